-- A Wireshark dissector for the Distributed Co-Simulation Protocol, DCP 1.0, over UDP and TCP.
--
-- Use:  wireshark -X lua_script:tools/dcp.lua capture.pcapng
-- or copy it to the folder of personal Lua plugins (Help, About, Folders).
--
-- DCP has no port of its own. PDUs are recognised by their type, length and contents where that is
-- enough, and from then on all that the two ends exchange; ports of data are learnt from the PDUs
-- that configure them. Ports that are always DCP can be set (Preferences, Protocols, DCP, or
-- -o dcp.udp_ports:8080-8089), and Decode As works as well.

local dcp = Proto("dcp", "Distributed Co-Simulation Protocol")

-- ---- numbers -----------------------------------------------------------------------------------

local states = {
    [0] = "ALIVE", "CONFIGURATION", "PREPARING", "PREPARED", "CONFIGURING", "CONFIGURED",
    "INITIALIZING", "INITIALIZED", "SENDING_I", "SYNCHRONIZING", "SYNCHRONIZED", "RUNNING",
    "COMPUTING", "COMPUTED", "SENDING_D", "STOPPING", "STOPPED", "ERRORHANDLING", "ERRORRESOLVED",
}
local data_types = {
    [0] = "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float32",
    "float64", "string", "binary",
}
local op_modes = { [0] = "HRT", "SRT", "NRT" }
local scopes = {
    [0] = "Initialization, Run and NonRealTime", "Initialization", "Run and NonRealTime",
}
local transports = { [0] = "UDP/IPv4", "Bluetooth", "CAN", "USB 2.0", "TCP/IPv4" }
local log_levels = { [0] = "fatal", "error", "warning", "information", "debug" }
local log_modes = { [0] = "none", "on request", "on notification" }
local errors = {
    [0x0000] = "NONE",
    [0x1001] = "PROTOCOL_ERROR_GENERIC",
    [0x1002] = "PROTOCOL_ERROR_HEARTBEAT_MISSED",
    [0x1003] = "PROTOCOL_ERROR_PDU_NOT_ALLOWED_IN_THIS_STATE",
    [0x1004] = "PROTOCOL_ERROR_PROPERTY_VIOLATED",
    [0x1005] = "PROTOCOL_ERROR_STATE_TRANSITION_IN_PROGRESS",
    [0x2001] = "INVALID_LENGTH",
    [0x2002] = "INVALID_LOG_CATEGORY",
    [0x2003] = "INVALID_LOG_LEVEL",
    [0x2004] = "INVALID_LOG_MODE",
    [0x2005] = "INVALID_MAJOR_VERSION",
    [0x2006] = "INVALID_MINOR_VERSION",
    [0x2007] = "INVALID_NETWORK_INFORMATION",
    [0x2008] = "INVALID_OP_MODE",
    [0x2009] = "INVALID_PAYLOAD",
    [0x200A] = "INVALID_SCOPE",
    [0x200B] = "INVALID_SOURCE_DATA_TYPE",
    [0x200C] = "INVALID_START_TIME",
    [0x200D] = "INVALID_STATE_ID",
    [0x200E] = "INVALID_STEPS",
    [0x200F] = "INVALID_TIME_RESOLUTION",
    [0x2010] = "INVALID_TRANSPORT_PROTOCOL",
    [0x2011] = "INVALID_UUID",
    [0x2012] = "INVALID_VALUE_REFERENCE",
    [0x2013] = "INVALID_SEQUENCE_ID",
    [0x3001] = "INCOMPLETE_CONFIG_GAP_INPUT_POS",
    [0x3002] = "INCOMPLETE_CONFIG_GAP_OUTPUT_POS",
    [0x3003] = "INCOMPLETE_CONFIG_GAP_TUNABLE_POS",
    [0x3004] = "INCOMPLETE_CONFIG_NW_INFO_INPUT",
    [0x3005] = "INCOMPLETE_CONFIG_NW_INFO_OUTPUT",
    [0x3006] = "INCOMPLETE_CONFIG_NW_INFO_TUNABLE",
    [0x3007] = "INCOMPLETE_CONFIG_SCOPE",
    [0x3008] = "INCOMPLETE_CONFIG_STEPS",
    [0x3009] = "INCOMPLETE_CONFIG_TIME_RESOLUTION",
    [0x300A] = "INCOMPLETE_CONFIGURATION",
    [0x4001] = "NOT_SUPPORTED_LOG_ON_NOTIFICATION",
    [0x4002] = "NOT_SUPPORTED_LOG_ON_REQUEST",
    [0x4003] = "NOT_SUPPORTED_VARIABLE_STEPS",
    [0x4004] = "NOT_SUPPORTED_TRANSPORT_PROTOCOL",
    [0x4005] = "NOT_SUPPORTED_PDU",
    [0x4006] = "NOT_SUPPORTED_PDU_SIZE",
}

-- ---- fields ------------------------------------------------------------------------------------

local f = {
    summary = ProtoField.string("dcp.summary", "Summary"),
    length = ProtoField.uint32("dcp.length", "Length", base.DEC, nil, nil, "prefix of a stream"),
    seq = ProtoField.uint16("dcp.seq", "pdu_seq_id", base.DEC),
    resp_seq = ProtoField.uint16("dcp.resp_seq", "resp_seq_id", base.DEC),
    exp_seq = ProtoField.uint16("dcp.exp_seq", "exp_seq_id", base.DEC),
    receiver = ProtoField.uint8("dcp.receiver", "receiver", base.DEC),
    sender = ProtoField.uint8("dcp.sender", "sender", base.DEC),
    state = ProtoField.uint8("dcp.state", "state_id", base.HEX, states),
    uuid = ProtoField.bytes("dcp.uuid", "slave_uuid"),
    op_mode = ProtoField.uint8("dcp.op_mode", "op_mode", base.DEC, op_modes),
    major = ProtoField.uint8("dcp.major", "major_version", base.DEC),
    minor = ProtoField.uint8("dcp.minor", "minor_version", base.DEC),
    time = ProtoField.int64("dcp.time", "time", base.DEC, nil, nil, "s since 1970"),
    steps = ProtoField.uint32("dcp.steps", "steps", base.DEC),
    numerator = ProtoField.uint32("dcp.numerator", "numerator", base.DEC),
    denominator = ProtoField.uint32("dcp.denominator", "denominator", base.DEC),
    data_id = ProtoField.uint16("dcp.data_id", "data_id", base.DEC),
    param_id = ProtoField.uint16("dcp.param_id", "param_id", base.DEC),
    pos = ProtoField.uint16("dcp.pos", "pos", base.DEC),
    vr = ProtoField.uint64("dcp.vr", "value reference", base.DEC),
    data_type = ProtoField.uint8("dcp.data_type", "source_data_type", base.DEC, data_types),
    transport = ProtoField.uint8("dcp.transport", "transport_protocol", base.DEC, transports),
    port = ProtoField.uint16("dcp.port", "port", base.DEC),
    ip = ProtoField.ipv4("dcp.ip", "ip_address"),
    bd_addr = ProtoField.uint64("dcp.bd_addr", "bd_addr", base.HEX),
    endpoint = ProtoField.uint8("dcp.endpoint", "endpoint_address", base.HEX),
    category = ProtoField.uint8("dcp.log_category", "log_category", base.DEC),
    level = ProtoField.uint8("dcp.log_level", "log_level", base.DEC, log_levels),
    mode = ProtoField.uint8("dcp.log_mode", "log_mode", base.DEC, log_modes),
    max = ProtoField.uint8("dcp.log_max_num", "log_max_num", base.DEC),
    scope = ProtoField.uint8("dcp.scope", "scope", base.DEC, scopes),
    error = ProtoField.uint16("dcp.error", "error_code", base.HEX, errors),
    template = ProtoField.uint8("dcp.log_template", "log_template_id", base.DEC),
    payload = ProtoField.bytes("dcp.payload", "payload"),
}
local e = {
    length = ProtoExpert.new("dcp.bad_length", "length does not fit the type",
                             expert.group.MALFORMED, expert.severity.WARN),
    type = ProtoExpert.new("dcp.unknown", "unknown type", expert.group.MALFORMED,
                           expert.severity.WARN),
    nack = ProtoExpert.new("dcp.refused", "request refused", expert.group.RESPONSE_CODE,
                           expert.severity.NOTE),
    wrong = ProtoExpert.new("dcp.failed", "slave in error", expert.group.RESPONSE_CODE,
                            expert.severity.WARN),
}

-- How a field stands in the summary. Each gets the bytes of the field.
local function named(names)
    return function(r)
        local x = r:le_uint()
        return names[x] or tostring(x)
    end
end
local function number(r)
    return r:len() > 4 and tostring(r:le_uint64()) or tostring(r:le_uint())
end
local function signed(r)
    return tostring(r:le_int64())
end
local function hex(r)
    local text = ""
    for i = 0, r:len() - 1 do
        text = string.format("%02X", r(i, 1):uint()) .. text
    end
    return "0x" .. (text:gsub("^0+(..)", "%1"))
end
local function error_code(r)
    return string.format("0x%04X", r:le_uint())
end
local function address(r)
    return string.format("%d.%d.%d.%d", r(3, 1):uint(), r(2, 1):uint(), r(1, 1):uint(),
                         r(0, 1):uint())
end
local function bytes(r)
    return r:bytes():tohex(true)
end

-- A row of a layout: field, bytes, label in the summary, how it is shown there.
local function row(field, size, label, show)
    return { field = field, size = size, label = label, show = show or number }
end
local seq = row(f.seq, 2, " seq=")
local receiver = row(f.receiver, 1, " rcv=")
local resp_seq = row(f.resp_seq, 2, " resp_seq=")
local sender = row(f.sender, 1, " snd=")
local state_id = row(f.state, 1, " state_id=", named(states))
local state = row(f.state, 1, " state=", named(states))
local uuid = row(f.uuid, 16, " uuid=", bytes)
local steps = row(f.steps, 4, " steps=")
local data_id = row(f.data_id, 2, " data_id=")
local param_id = row(f.param_id, 2, " param_id=")
local pos = row(f.pos, 2, " pos=")
local source_type = row(f.data_type, 1, " src_type=", named(data_types))
local transport = row(f.transport, 1, " tp=")
local category = row(f.category, 1, " category=")
local error_row = row(f.error, 2, " error=", error_code)
local time = row(f.time, 8, " time=", signed)
local function vr(label)
    return row(f.vr, 8, label)
end

-- What follows the transport.
local ip = { row(f.port, 2, " port="), row(f.ip, 4, " ip=", address) }
local bluetooth = { row(f.port, 1, " port="), row(f.bd_addr, 8, " bd_addr=", hex) }
local usb = { row(f.endpoint, 1, " endpoint=", hex) }
local target = { [0] = ip, [1] = bluetooth, [3] = { usb[1], uuid }, [4] = ip }
local source = { [0] = ip, [1] = bluetooth, [3] = usb, [4] = ip }
local param = {
    [0] = ip, [1] = { row(f.port, 2, " port="), row(f.bd_addr, 4, " bd_addr=", hex) }, [3] = usb,
    [4] = ip,
}

-- ---- layouts -----------------------------------------------------------------------------------

local layouts = {}
-- open: a payload follows, of at least that many bytes; tails: by transport
local function layout(type, name, rows, more)
    local l = more or {}
    l.name, l.rows, l.size = name, rows, 1
    for _, r in ipairs(rows) do
        l.size = l.size + r.size
    end
    layouts[type] = l
end
local function request(type, name, ...)
    layout(type, name, { seq, receiver, ... })
end
local function stc(type, name, ...)
    request(type, name, state_id, ...)
end

stc(0x01, "STC_register", uuid, row(f.op_mode, 1, " op_mode=", named(op_modes)),
    row(f.major, 1, " ver="), row(f.minor, 1, "."))
stc(0x02, "STC_deregister")
stc(0x03, "STC_prepare")
stc(0x04, "STC_configure")
stc(0x05, "STC_initialize")
stc(0x06, "STC_run", time)
stc(0x07, "STC_do_step", steps)
stc(0x08, "STC_send_outputs")
stc(0x09, "STC_stop")
stc(0x0A, "STC_reset")
request(0x20, "CFG_time_res", row(f.numerator, 4, " num="), row(f.denominator, 4, " den="))
request(0x21, "CFG_steps", steps, data_id)
request(0x22, "CFG_input", data_id, pos, vr(" target_vr="), source_type)
request(0x23, "CFG_output", data_id, pos, vr(" source_vr="))
request(0x24, "CFG_clear")
layout(0x25, "CFG_target_network_information", { seq, receiver, data_id, transport },
       { tails = target })
layout(0x26, "CFG_source_network_information", { seq, receiver, data_id, transport },
       { tails = source })
layout(0x27, "CFG_parameter", { seq, receiver, vr(" param_vr="), source_type }, { open = 1 })
request(0x28, "CFG_tunable_parameter", param_id, pos, vr(" param_vr="), source_type)
layout(0x29, "CFG_param_network_information", { seq, receiver, param_id, transport },
       { tails = param })
request(0x2A, "CFG_logging", category, row(f.level, 1, " level="), row(f.mode, 1, " mode="))
request(0x2B, "CFG_scope", data_id, row(f.scope, 1, " scope="))
request(0x80, "INF_state")
request(0x81, "INF_error")
request(0x82, "INF_log", category, row(f.max, 1, " max="))
layout(0xB0, "RSP_ack", { resp_seq, sender })
layout(0xB1, "RSP_nack", { resp_seq, sender, row(f.exp_seq, 2, " exp_seq="), error_row })
layout(0xB2, "RSP_state_ack", { resp_seq, sender, state })
layout(0xB3, "RSP_error_ack", { resp_seq, sender, error_row })
layout(0xB4, "RSP_log_ack", { resp_seq, sender }, { open = 0 })
layout(0xE0, "NTF_state_changed", { sender, state })
layout(0xE1, "NTF_log", { sender, time, row(f.template, 1, " template=") }, { open = 0 })
layout(0xF0, "DAT_input_output", { seq, data_id }, { open = 0 })
layout(0xF1, "DAT_parameter", { seq, param_id }, { open = 0 })

local type_names = {}
for type, l in pairs(layouts) do
    type_names[type] = l.name
end
f.type = ProtoField.uint8("dcp.type", "type_id", base.HEX, type_names)

do
    local list = {}
    for _, field in pairs(f) do
        list[#list + 1] = field
    end
    dcp.fields = list
end
dcp.experts = { e.length, e.type, e.nack, e.wrong }

-- The rows of a PDU and whether its length is right.
local function rows_of(l, tvb)
    local size, tail = l.size, nil
    if tvb:len() < size then return nil end
    if l.tails then
        tail = l.tails[tvb(6, 1):uint()]
        for _, r in ipairs(tail or {}) do
            size = size + r.size
        end
    end
    local open = l.open
    if l.tails and not tail then open = 0 end -- a transport that is not known here
    if open and tvb:len() >= size + open or tvb:len() == size then return tail or {}, size end
    return nil
end

-- ---- who speaks DCP ----------------------------------------------------------------------------

local known = {} -- "udp 127.0.0.1:8080"

local function end_of(kind, host, port)
    return kind .. " " .. tostring(host) .. ":" .. tostring(port)
end

local function learn(pinfo, kind)
    known[end_of(kind, pinfo.src, pinfo.src_port)] = true
    known[end_of(kind, pinfo.dst, pinfo.dst_port)] = true
end

local function known_ends(pinfo, kind) -- 0, 1 or 2
    return (known[end_of(kind, pinfo.src, pinfo.src_port)] and 1 or 0) +
           (known[end_of(kind, pinfo.dst, pinfo.dst_port)] and 1 or 0)
end

function dcp.init()
    known = {}
end

-- ---- one PDU -----------------------------------------------------------------------------------

local function add_rows(tree, tvb, at, rows, parts)
    for _, r in ipairs(rows) do
        local range = tvb(at, r.size)
        tree:add_le(r.field, range)
        parts[#parts + 1] = r.label .. r.show(range)
        at = at + r.size
    end
    return at
end

-- The fields that every one of its family has, of a PDU with a wrong length.
local function add_head(tree, tvb, l, parts)
    local at = 1
    for _, r in ipairs(l.rows) do
        local head = r == seq or r == receiver or r == resp_seq or r == sender or r == state_id
        if not head or at + r.size > tvb:len() then break end
        at = add_rows(tree, tvb, at, { r }, parts)
    end
end

local function learn_port(tvb)
    local type, protocol = tvb(0, 1):uint(), tvb(6, 1):uint()
    if (type == 0x25 or type == 0x26 or type == 0x29) and (protocol == 0 or protocol == 4) then
        local kind = protocol == 0 and "udp" or "tcp"
        known[end_of(kind, address(tvb(9, 4)), tvb(7, 2):le_uint())] = true
    end
end

local function describe(tvb, tree)
    if tvb:len() == 0 then return "-" end
    local type = tvb(0, 1):uint()
    local l = layouts[type]
    tree:add(f.type, tvb(0, 1))
    if not l then
        tree:add_proto_expert_info(e.type)
        return string.format("unknown type 0x%02X", type)
    end
    local parts = { l.name }
    local tail, size = rows_of(l, tvb)
    if not tail then
        add_head(tree, tvb, l, parts)
        parts[#parts + 1] = " bad_length=" .. tvb:len()
        tree:add_proto_expert_info(e.length)
        return table.concat(parts)
    end
    add_rows(tree, tvb, add_rows(tree, tvb, 1, l.rows, parts), tail, parts)
    if tvb:len() > size then
        tree:add(f.payload, tvb(size))
        parts[#parts + 1] = " payload=" .. bytes(tvb(size))
    end
    if type == 0xB1 then
        local code = tvb(6, 2):le_uint()
        tree:add_proto_expert_info(e.nack, "refused: " .. (errors[code] or error_code(tvb(6, 2))))
    elseif type == 0xE0 and tvb(2, 1):uint() == 0x11 then
        tree:add_proto_expert_info(e.wrong)
    elseif l.tails then
        learn_port(tvb)
    end
    return table.concat(parts)
end

local function add_pdu(tvb, pinfo, tree, whole, prefix)
    local branch = tree:add(dcp, whole)
    if prefix then branch:add_le(f.length, prefix) end
    local text = describe(tvb, branch)
    branch:add(f.summary, whole, text):set_generated()
    branch:set_text("DCP, " .. text)
    return text
end

-- ---- transports --------------------------------------------------------------------------------

local function dissect_udp(tvb, pinfo, tree)
    pinfo.cols.protocol = "DCP"
    learn(pinfo, "udp")
    pinfo.cols.info = add_pdu(tvb(), pinfo, tree, tvb(), nil)
    return tvb:len()
end

local LONGEST = 0x4000000 -- a length beyond it is not one

local function dissect_tcp(tvb, pinfo, tree)
    local texts = {}
    learn(pinfo, "tcp")
    local function length(t, _, at)
        local n = t(at, 4):le_uint()
        return n > LONGEST and t:len() - at or 4 + n
    end
    local function one(t, p, branch)
        local pdu = t:len() > 4 and t(4):tvb() or ByteArray.new(""):tvb("empty")
        texts[#texts + 1] = add_pdu(pdu(), p, branch, t(), t(0, 4))
        p.cols.protocol = "DCP"
        p.cols.info = table.concat(texts, "; ")
        return t:len()
    end
    dissect_tcp_pdus(tvb, tree, 4, length, one)
    return tvb:len()
end

local TCP = 2 -- pinfo.port_type

function dcp.dissector(tvb, pinfo, tree)
    if pinfo.port_type == TCP then return dissect_tcp(tvb, pinfo, tree) end
    return dissect_udp(tvb, pinfo, tree)
end

-- 2: surely DCP, 1: may be, 0: no
local function likeness(tvb)
    local l = tvb:len() > 0 and layouts[tvb(0, 1):uint()]
    if not l then return 0 end
    local tail = rows_of(l, tvb)
    if not tail then return 0 end
    local type = tvb(0, 1):uint()
    if type == 0x01 then -- registers in ALIVE, as version 1
        if tvb(4, 1):uint() ~= 0 or tvb(21, 1):uint() > 2 then return 0 end
        return tvb(22, 1):uint() == 1 and 2 or 0
    elseif type <= 0x0A then
        if tvb(3, 1):uint() == 0 or tvb(4, 1):uint() > 0x12 then return 0 end
        return (type == 0x06 or type == 0x07) and 2 or 1
    elseif type == 0x22 or type == 0x28 then
        return tvb(3, 1):uint() > 0 and tvb(16, 1):uint() <= 11 and 2 or 0
    elseif type == 0x25 or type == 0x26 or type == 0x29 then
        return tvb(3, 1):uint() > 0 and tvb(6, 1):uint() <= 4 and 2 or 0
    elseif type == 0xB1 then
        return errors[tvb(6, 2):le_uint()] and 2 or 0
    elseif type == 0xE0 then
        return tvb(2, 1):uint() <= 0x12 and 1 or 0
    end
    return 1
end

local function looks_like(tvb, pinfo, kind)
    return likeness(tvb) + known_ends(pinfo, kind) >= 2
end

dcp:register_heuristic("udp", function(tvb, pinfo, tree)
    if not looks_like(tvb(), pinfo, "udp") then return false end
    dissect_udp(tvb, pinfo, tree)
    return true
end)

dcp:register_heuristic("tcp", function(tvb, pinfo, tree)
    if tvb:len() < 5 then return false end
    local length = tvb(0, 4):le_uint()
    if length == 0 or length > tvb:len() - 4 then return false end
    if not looks_like(tvb(4, length):tvb(), pinfo, "tcp") then return false end
    dissect_tcp(tvb, pinfo, tree)
    pinfo.conversation = dcp
    return true
end)

-- ---- ports that are always DCP -----------------------------------------------------------------

dcp.prefs.udp_ports = Pref.range("UDP ports", "", "Ports that are always DCP", 65535)
dcp.prefs.tcp_ports = Pref.range("TCP ports", "", "Ports that are always DCP", 65535)
local udp_ports, tcp_ports

local udp_table = DissectorTable.get("udp.port")
local tcp_table = DissectorTable.get("tcp.port")
udp_table:add_for_decode_as(dcp)
tcp_table:add_for_decode_as(dcp)

local function move(ports, old, new)
    if old and old ~= "" then ports:remove(old, dcp) end
    if new and new ~= "" then ports:add(new, dcp) end
    return new
end

function dcp.prefs_changed()
    udp_ports = move(udp_table, udp_ports, dcp.prefs.udp_ports)
    tcp_ports = move(tcp_table, tcp_ports, dcp.prefs.tcp_ports)
end
