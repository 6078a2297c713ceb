// dcplib_slave DCPX udp|tcp PORT: the lag of lag.dcpx, y' = (k u - y)/T by Euler steps, as a slave
// of DCPLib on 127.0.0.1. Says "state N" on standard output whenever its state changes.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

// clang-format off: its headers need each other in this order
#include <dcp/helper/Helper.hpp>
#include <dcp/logic/DcpManagerSlave.hpp>
#include <dcp/model/pdu/DcpPduFactory.hpp>
#include <dcp/driver/ethernet/tcp/TcpDriver.hpp>
#include <dcp/driver/ethernet/udp/UdpDriver.hpp>
#include <dcp/xml/DcpSlaveDescriptionReader.hpp>
// clang-format on

enum : uint64_t { U = 1, Y = 2, TICKS = 3, T = 4, K = 5 };

class Lag {
public:
    Lag(const char* dcpx, const std::string& transport, uint16_t port)
    {
        std::shared_ptr<SlaveDescription_t> d = readSlaveDescription(dcpx);
        if (transport == "udp") {
            udp.reset(new UdpDriver("127.0.0.1", port));
            manager.reset(new DcpManagerSlave(*d, udp->getDcpDriver()));
        } else {
            tcp.reset(new TcpDriver("127.0.0.1", port));
            manager.reset(new DcpManagerSlave(*d, tcp->getDcpDriver()));
        }
        manager->setTimeResListener<SYNC>([this](uint32_t n, uint32_t d_) { h = double(n) / d_; });
        manager->setConfigureCallback<SYNC>([this] { restart(); });
        const auto step = [this](uint64_t steps) { go(steps); };
        manager->setSynchronizingStepCallback<SYNC>(step);
        manager->setSynchronizedStepCallback<SYNC>(step);
        manager->setRunningStepCallback<SYNC>(step);
        manager->setSynchronizingNRTStepCallback<SYNC>(step);
        manager->setSynchronizedNRTStepCallback<SYNC>(step);
        manager->setRunningNRTStepCallback<SYNC>(step);
        manager->setStateChangedListener<SYNC>([](DcpState state) {
            std::printf("state %d\n", int(state));
            std::fflush(stdout);
        });
    }

    void start() { manager->start(); }

private:
    void restart()
    {
        *manager->getOutput<double*>(Y) = 0;
        *manager->getOutput<uint32_t*>(TICKS) = 0;
    }

    void go(uint64_t steps)
    {
        double* y = manager->getOutput<double*>(Y);
        const double u = *manager->getInput<double*>(U);
        const double k = *manager->getParameter<double*>(K), t = *manager->getParameter<double*>(T);
        for (uint64_t i = 0; i < steps; i++) {
            *y += h / t * (k * u - *y);
        }
        *manager->getOutput<uint32_t*>(TICKS) += uint32_t(steps);
    }

    double h = 0.01; // the recommended resolution
    std::unique_ptr<UdpDriver> udp;
    std::unique_ptr<TcpDriver> tcp;
    std::unique_ptr<DcpManagerSlave> manager;
};

int main(int argc, char** argv)
{
    if (argc != 4) {
        std::fprintf(stderr, "usage: dcplib_slave DCPX udp|tcp PORT\n");
        return 2;
    }
    Lag lag(argv[1], argv[2], uint16_t(std::atoi(argv[3])));
    lag.start();
}
