// dcplib_master DCPX udp|tcp nrt|srt PORT MINE STEPS SCRIPT: drives one slave that listens at PORT
// of 127.0.0.1 as a master of DCPLib at port MINE. All scalar float64 inputs are one group and are
// given 1, 2, 3 ..., all scalar float64 outputs another one. CFG PDUs are sent without waiting, as
// the examples of DCPLib do.
//
// SCRIPT is made of letters: g register, c configure, k CFG_clear before that, i one turn of
// initialisation, r run and STEPS steps (nrt) or data PDUs (srt), s stop, z reset, d deregister.
// "gcirsd" is a whole run, "gcrszcrsd" two of them with a reset between.
// Behind each r it prints "data COUNT values ...". A nack or a silence of 10 s is exit code 1.
#include <cassert>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

// clang-format off: its headers need each other in this order
#include <dcp/helper/Helper.hpp>
#include <dcp/model/pdu/DcpPduFactory.hpp>
#include <dcp/logic/DcpManagerMaster.hpp>
#include <dcp/driver/ethernet/tcp/TcpDriver.hpp>
#include <dcp/driver/ethernet/udp/UdpDriver.hpp>
#include <dcp/xml/DcpSlaveDescriptionReader.hpp>
// clang-format on

enum : uint16_t { FEED = 10, WATCH = 20 };
enum : uint8_t { SLAVE = 1 };
static const uint32_t loopback = 0x7F000001;

class Master {
public:
    Master(char** argv)
        : d(readSlaveDescription(argv[1])), is_udp(std::string(argv[2]) == "udp"),
          is_nrt(std::string(argv[3]) == "nrt"), port(uint16_t(std::atoi(argv[4]))),
          mine(uint16_t(std::atoi(argv[5]))), steps(std::atoi(argv[6]))
    {
        if (is_udp) {
            udp.reset(new UdpDriver("127.0.0.1", mine));
            driver = udp->getDcpDriver();
        } else {
            tcp.reset(new TcpDriver("127.0.0.1", mine));
            driver = tcp->getDcpDriver();
        }
        manager.reset(new DcpManagerMaster(driver));
        manager->setAckReceivedListener<SYNC>(
            [this](uint8_t, uint16_t) { note([this] { acks++; }); });
        manager->setNAckReceivedListener<SYNC>([](uint8_t, uint16_t seq, DcpError error) {
            std::printf("nack to request %d: 0x%04x\n", seq, int(error));
            std::exit(1);
        });
        manager->setStateChangedNotificationReceivedListener<SYNC>(
            [this](uint8_t, DcpState s) { note([&] { state = s; }); });
        manager->setDataReceivedListener<SYNC>([this](uint16_t id, size_t length, uint8_t* bytes) {
            note([&] { take(id, length, bytes); });
        });
        for (const Variable_t& v : d->Variables) {
            const bool input = v.Input && v.Input->Float64 && v.Input->dimensions.empty();
            const bool output = v.Output && v.Output->Float64 && v.Output->dimensions.empty();
            if (input) { inputs.push_back(v.valueReference); }
            if (output) { outputs.push_back(v.valueReference); }
        }
    }

    int play(const char* script)
    {
        std::thread receiver([this] { manager->start(); });
        receiver.detach();
        std::this_thread::sleep_for(std::chrono::milliseconds(300)); // it cannot be asked
        uint8_t info[6];
        address(info, port);
        driver.setSlaveNetworkInformation(SLAVE, info);
        for (const char* c = script; *c; c++) {
            act(*c);
        }
        std::printf("done\n");
        std::fflush(stdout);
        std::_Exit(0); // DCPLib cannot be ended in an orderly way
    }

private:
    static void address(uint8_t* info, uint16_t at)
    {
        std::memcpy(info, &at, sizeof at);
        std::memcpy(info + 2, &loopback, sizeof loopback);
    }

    void note(const std::function<void()>& what)
    {
        std::lock_guard<std::mutex> hold(lock);
        what();
        changed.notify_all();
    }

    void wait(const char* what, const std::function<bool()>& ready)
    {
        std::unique_lock<std::mutex> hold(lock);
        if (!changed.wait_for(hold, std::chrono::seconds(10), ready)) {
            std::printf("%s did not come; the slave is in state %d\n", what, int(state));
            std::exit(1);
        }
    }

    void reach(DcpState s)
    {
        wait("a state", [this, s] { return state == s; });
    }

    void take(uint16_t id, size_t length, const uint8_t* bytes)
    {
        if (id != WATCH || length != 8 * outputs.size()) {
            std::printf("data_id %d with %zu bytes of payload\n", id, length);
            std::exit(1);
        }
        values.assign(outputs.size(), 0);
        std::memcpy(values.data(), bytes, length);
        data++;
    }

    void feed()
    {
        std::vector<double> x;
        for (size_t i = 0; i < inputs.size(); i++) {
            x.push_back(double(i + 1));
        }
        if (!x.empty()) {
            manager->DAT_input_output(FEED, reinterpret_cast<uint8_t*>(x.data()), 8 * x.size());
        }
    }

    // Data of the slave come in at our only socket; ours go to the data port of the slave.
    void networks(uint16_t at)
    {
        if (is_udp) {
            manager->CFG_target_network_information_UDP(SLAVE, WATCH, loopback, mine);
            manager->CFG_source_network_information_UDP(SLAVE, FEED, loopback, at);
        } else {
            manager->CFG_target_network_information_TCP(SLAVE, WATCH, loopback, mine);
            manager->CFG_source_network_information_TCP(SLAVE, FEED, loopback, at);
        }
    }

    void configure()
    {
        const Resolution_t& r = d->TimeRes.resolutions.front();
        const uint16_t at = is_udp ? port : uint16_t(mine + 1);
        int sent = 7;
        acks = 0;
        manager->CFG_time_res(SLAVE, r.numerator, r.denominator);
        manager->CFG_scope(SLAVE, FEED, DcpScope::Initialization_Run_NonRealTime);
        manager->CFG_scope(SLAVE, WATCH, DcpScope::Initialization_Run_NonRealTime);
        manager->CFG_steps(SLAVE, WATCH, 1);
        manager->CFG_steps(SLAVE, FEED, 1);
        networks(at);
        for (size_t i = 0; i < inputs.size(); i++, sent++) {
            manager->CFG_input(SLAVE, FEED, uint16_t(i), inputs[i], DcpDataType::float64);
        }
        for (size_t i = 0; i < outputs.size(); i++, sent++) {
            manager->CFG_output(SLAVE, WATCH, uint16_t(i), outputs[i]);
        }
        wait("an acknowledgement", [this, sent] { return acks == sent; });
        manager->STC_prepare(SLAVE, DcpState::CONFIGURATION);
        reach(DcpState::PREPARED);
        uint8_t info[6];
        address(info, at);
        driver.setTargetNetworkInformation(FEED, info);
        driver.configure();
        manager->STC_configure(SLAVE, DcpState::PREPARED);
        reach(DcpState::CONFIGURED);
    }

    void initialize()
    {
        feed();
        data = 0;
        manager->STC_initialize(SLAVE, DcpState::CONFIGURED);
        reach(DcpState::INITIALIZED);
        manager->STC_send_outputs(SLAVE, DcpState::INITIALIZED);
        reach(DcpState::CONFIGURED);
        wait("initial data", [this] { return data == 1; });
    }

    void run()
    {
        feed();
        data = 0;
        manager->STC_run(SLAVE, DcpState::CONFIGURED, 0);
        reach(DcpState::SYNCHRONIZED);
        manager->STC_run(SLAVE, DcpState::SYNCHRONIZED, 0);
        reach(DcpState::RUNNING);
        for (int i = 0; is_nrt && i < steps; i++) {
            feed();
            manager->STC_do_step(SLAVE, DcpState::RUNNING, 1);
            reach(DcpState::COMPUTED);
            manager->STC_send_outputs(SLAVE, DcpState::COMPUTED);
            reach(DcpState::RUNNING);
            wait("data of a step", [this, i] { return data == i + 1; });
        }
        wait("data", [this] { return data >= steps; });
        std::lock_guard<std::mutex> hold(lock);
        std::printf("data %d values", data);
        for (double v : values) {
            std::printf(" %.17g", v);
        }
        std::printf("\n");
    }

    void act(char what)
    {
        switch (what) {
        case 'g':
            manager->STC_register(SLAVE, DcpState::ALIVE, convertToUUID(d->uuid),
                                  is_nrt ? DcpOpMode::NRT : DcpOpMode::SRT, 1, 0);
            reach(DcpState::CONFIGURATION);
            break;
        case 'k': {
            acks = 0;
            manager->CFG_clear(SLAVE);
            wait("an acknowledgement", [this] { return acks == 1; });
            break;
        }
        case 'c':
            configure();
            break;
        case 'i':
            initialize();
            break;
        case 'r':
            run();
            break;
        case 's':
            manager->STC_stop(SLAVE, DcpState::RUNNING);
            reach(DcpState::STOPPED);
            break;
        case 'z':
            manager->STC_reset(SLAVE, DcpState::STOPPED);
            reach(DcpState::CONFIGURATION);
            break;
        case 'd':
            manager->STC_deregister(SLAVE, DcpState::STOPPED);
            reach(DcpState::ALIVE);
            break;
        default:
            std::printf("no letter %c\n", what);
            std::exit(2);
        }
    }

    std::shared_ptr<SlaveDescription_t> d;
    bool is_udp, is_nrt;
    uint16_t port, mine;
    int steps;
    std::unique_ptr<UdpDriver> udp;
    std::unique_ptr<TcpDriver> tcp;
    DcpDriver driver;
    std::unique_ptr<DcpManagerMaster> manager;
    std::vector<uint64_t> inputs, outputs;

    std::mutex lock; // of what follows
    std::condition_variable changed;
    DcpState state = DcpState::ALIVE;
    int acks = 0, data = 0;
    std::vector<double> values;
};

int main(int argc, char** argv)
{
    if (argc != 8) {
        std::fprintf(stderr,
                     "usage: dcplib_master DCPX udp|tcp nrt|srt PORT MINE STEPS SCRIPT\n");
        return 2;
    }
    Master master(argv);
    return master.play(argv[7]);
}
