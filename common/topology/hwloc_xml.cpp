// SPDX-License-Identifier: GPL-2.0-or-later
//
// What is used of hwloc's XML (the format is that of hwloc's doc/, "Importing and exporting
// topologies from/to XML files", and of its topology-xml.c):
//   <object type= os_index= gp_index= cpuset= nodeset= pci_busid= pci_type= bridge_type= name=
//           osdev_type=>
//     <info name="GPUModel" value=>            nested as the machine is; the I/O tree below the
//     <object ...>                             object that it is near to
//   <distances2 nbobjs= name= type= indexing="gp"> / <distances2hetero nbobjs= name=>
//     <indexes>, <u64values>                   numbers, or TYPE:NUMBER, several elements each
#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <set>
#include <unordered_map>

#include "common/base/text.hpp"
#include "common/topology/gpu_graph.hpp"
#include "common/topology/words.hpp"
#include "common/topology/xml_text.hpp"

namespace sluice {
namespace {

constexpr std::size_t nowhere = static_cast<std::size_t>(-1);
constexpr std::size_t most_set_bits = 65536;
constexpr std::size_t most_joined_objects = 1024;
constexpr std::size_t most_nics = 1024;
constexpr std::uint64_t most_link_mbps = 100'000'000;  // 100 TB/s: no link, so no bandwidth

struct Object {
    std::size_t parent = nowhere;
    std::string type;
    std::string gp_index;
    std::string os_index;
    std::string cpuset;
    std::string nodeset;
    std::string pci_busid;
    std::string pci_type;  // "0302 [10de:1db8] ..."
    std::string bridge_type;
    std::string osdev_type;
    std::string name;
    std::string model;
};

/// Bandwidth between any two objects, [row * n + column], MB/s.
struct Distances {
    bool is_nvlink = false;
    std::size_t count = 0;
    std::string type;  // of all objects, or empty: then each index names its own
    std::vector<std::string> indexes;
    std::vector<std::uint64_t> values;

    /// In either direction, as some back ends fill one half only.
    std::uint64_t mbps(std::size_t i, std::size_t j) const {
        return std::max(values[i * count + j], values[j * count + i]);
    }
};

void append_words(std::string_view text, std::vector<std::string>& words) {
    for (const std::string_view line : split(text, '\n')) {
        for (const std::string_view word : split(line, ' ')) {
            if (!trim(word).empty()) words.emplace_back(trim(word));
        }
    }
}

/// The bits of a set as hwloc prints it: hexadecimal words of 32 bits, the highest first, empty
/// for zero ("0x3,,0xff"). Nothing for an endless or malformed one.
std::optional<std::vector<std::size_t>> parse_set(std::string_view text) {
    std::vector<std::size_t> bits;
    const auto words = split(text, ',');
    if (text.empty() || words.size() * 32 > most_set_bits) return std::nullopt;
    for (std::size_t i = words.size(); i-- > 0;) {
        std::string_view digits = words[i];
        if (digits.starts_with("0x")) digits.remove_prefix(2);
        std::uint32_t word = 0;
        const char* const end = digits.data() + digits.size();
        const auto [rest, error] = std::from_chars(digits.data(), end, word, 16);
        if (!words[i].empty() && (error != std::errc() || rest != end)) return std::nullopt;
        for (std::size_t bit = 0; bit < 32; ++bit) {
            if ((word >> bit & 1) != 0) bits.push_back((words.size() - 1 - i) * 32 + bit);
        }
    }
    return bits;
}

/// "0-19,40-59"
std::string list_of(const std::vector<std::size_t>& bits) {
    std::string out;
    for (std::size_t i = 0; i < bits.size();) {
        std::size_t last = i;
        while (last + 1 < bits.size() && bits[last + 1] == bits[last] + 1) ++last;
        if (!out.empty()) out += ',';
        out += std::to_string(bits[i]);
        if (last > i) out += '-' + std::to_string(bits[last]);
        i = last + 1;
    }
    return out;
}

class Machine {
  public:
    explicit Machine(std::string_view name) : name_(name) {}

    Result<GpuGraph> read(std::string_view text) {
        if (Status status = parse(text); !status) return status.error();
        if (Status status = find_gpus(); !status) return status.error();
        graph_ = GpuGraph(static_cast<int>(gpus_.size()));
        for (std::size_t gpu = 0; gpu < gpus_.size(); ++gpu) describe(gpu);
        for (std::size_t a = 0; a < gpus_.size(); ++a) {
            for (std::size_t b = a + 1; b < gpus_.size(); ++b) {
                GpuLink link;
                link.path = path_between(gpus_[a], gpus_[b]);
                graph_.set_link(static_cast<int>(a), static_cast<int>(b), link);
            }
        }
        if (!distances_.empty()) {
            for (std::size_t i = 0; i < objects_.size(); ++i)
                by_index_.emplace(objects_[i].type + ":" + objects_[i].gp_index, i);
        }
        find_nics();
        for (const Distances& distances : distances_) {
            if (Status status = add_links(distances); !status) return status.error();
        }
        complete_graph(graph_);
        return std::move(graph_);
    }

  private:
    Error error(const std::string& what) const {
        return {ErrorCode::bad_input, name_ + ": " + what};
    }

    // --- the text
    Status parse(std::string_view text) {
        XmlText xml(text);
        std::size_t current = nowhere;  // the object that is open
        bool known_root = false;
        Distances* distances = nullptr;
        for (;;) {
            const auto event = xml.next();
            if (!event) return Error{event.error().code, name_ + ":" + event.error().message};
            switch (*event) {
                case XmlText::Event::end:
                    if (!known_root) return error("is XML, but has no <topology>");
                    return {};
                case XmlText::Event::open:
                    if (xml.name() == "topology") {
                        known_root = true;
                        flags_of_types_ = xml.attribute("version").starts_with("3");
                        if (Status status = check_version(xml.attribute("version")); !status)
                            return status;
                    } else if (xml.name() == "object") {
                        current = add_object(xml, current);
                    } else if (xml.name() == "info" && current != nowhere) {
                        add_info(xml, objects_[current]);
                    } else if (xml.name() == "distances2" || xml.name() == "distances2hetero") {
                        distances = begin_distances(xml);
                    }
                    in_ = xml.name();
                    break;
                case XmlText::Event::text:
                    if (distances == nullptr) break;
                    if (in_ == "indexes") append_words(xml.text(), distances->indexes);
                    if (in_ == "u64values") append_values(xml.text(), distances->values);
                    break;
                case XmlText::Event::close:
                    in_ = {};
                    if (xml.name() == "object" && current != nowhere)
                        current = objects_[current].parent;
                    if (xml.name() == "distances2" || xml.name() == "distances2hetero")
                        distances = nullptr;
                    break;
            }
        }
    }

    Status check_version(const std::string& version) const {
        const std::string_view major = std::string_view(version).substr(0, version.find('.'));
        if (version.empty() || major == "1" || major == "2" || major == "3") return {};
        return error("hwloc XML of version " + printable(version, 20) +
                     ": the versions 1, 2 and 3 are read");
    }

    std::size_t add_object(const XmlText& xml, std::size_t parent) {
        Object object;
        object.parent = parent;
        object.type = xml.attribute("type");
        object.gp_index = xml.attribute("gp_index");
        object.os_index = xml.attribute("os_index");
        object.cpuset = xml.attribute("cpuset");
        object.nodeset = xml.attribute("nodeset");
        object.pci_busid = xml.attribute("pci_busid");
        if (!is_pci_bus_id(object.pci_busid)) object.pci_busid.clear();
        object.pci_type = xml.attribute("pci_type");
        object.bridge_type = xml.attribute("bridge_type");
        object.osdev_type = xml.attribute("osdev_type");
        object.name = xml.attribute("name");
        objects_.push_back(std::move(object));
        return objects_.size() - 1;
    }

    static void add_info(const XmlText& xml, Object& object) {
        const std::string key = xml.attribute("name");
        if (key == "GPUModel" || (key == "PCIDevice" && object.model.empty()))
            object.model = printable(xml.attribute("value"));
    }

    Distances* begin_distances(const XmlText& xml) {
        const std::string name = xml.attribute("name");
        if (name != "NVLinkBandwidth" && name != "XGMIBandwidth") return nullptr;
        Distances distances;
        distances.is_nvlink = name == "NVLinkBandwidth";
        const auto count = parse_integer(xml.attribute("nbobjs"));
        distances.count = count && *count > 0 ? static_cast<std::size_t>(*count) : 0;
        if (xml.name() == "distances2") distances.type = xml.attribute("type");
        distances_.push_back(std::move(distances));
        return &distances_.back();
    }

    static void append_values(std::string_view text, std::vector<std::uint64_t>& values) {
        std::vector<std::string> words;
        append_words(text, words);
        for (const std::string& word : words) {
            const auto value = parse_integer(word);
            const bool usable =
                value && *value > 0 && static_cast<std::uint64_t>(*value) <= most_link_mbps;
            values.push_back(usable ? static_cast<std::uint64_t>(*value) : 0);
        }
    }

    // --- the GPUs
    /// The PCI device that an OS device belongs to, or nowhere.
    std::size_t pci_device_of(std::size_t object) const {
        while (object != nowhere && objects_[object].type != "PCIDev")
            object = objects_[object].parent;
        return object;
    }

    /// The device number in "nvml12", when `name` is the prefix with a number.
    static bool is_device(const Object& object, std::string_view prefix) {
        return object.type == "OSDev" && object.name.starts_with(prefix) &&
               object.name.size() > prefix.size() && object.name[prefix.size()] >= '0' &&
               object.name[prefix.size()] <= '9';
    }

    /// Class 03xx is display, 1200 accelerators. On-board consoles (Matrox, ASPEED) are display
    /// controllers too, so the vendor has to be one of GPUs, or the class that of a GPU without a
    /// display.
    static bool is_gpu_by_class(const Object& object) {
        const std::string_view type = object.pci_type;
        const bool vendor = type.find("[10de:") == 5 || type.find("[1002:") == 5;
        return object.type == "PCIDev" &&
               (type.starts_with("0302") ||
                (vendor && (type.starts_with("0300") || type.starts_with("0380") ||
                            type.starts_with("1200"))));
    }

    Status find_gpus() {
        for (const char* prefix : {"nvml", "cuda", "rsmi", "ze", "opencl"}) {
            for (std::size_t i = 0; i < objects_.size(); ++i) {
                if (!is_device(objects_[i], prefix)) continue;
                const std::size_t pci = pci_device_of(i);
                // OpenCL calls processors devices too: only those on a PCI bus are GPUs.
                if (pci != nowhere || std::string_view(prefix) != "opencl")
                    add_gpu(pci == nowhere ? i : pci, objects_[i]);
            }
            if (!gpus_.empty()) break;
        }
        if (gpus_.empty()) {
            for (std::size_t i = 0; i < objects_.size(); ++i) {
                if (is_gpu_by_class(objects_[i])) add_gpu(i, objects_[i]);
            }
        }
        if (gpus_.empty()) {
            return Error{ErrorCode::not_found,
                         name_ +
                             ": has no GPU: write the file on the node itself, with its PCI "
                             "devices (lstopo --of xml FILE)"};
        }
        if (gpus_.size() > GpuSet::max_gpus) {
            return error(std::to_string(gpus_.size()) + " GPUs, at most " +
                         std::to_string(GpuSet::max_gpus) + " are read");
        }
        // Longer domains are higher ones; a GPU without a bus id comes after those with one, in the
        // order of the file.
        std::stable_sort(gpus_.begin(), gpus_.end(), [this](std::size_t a, std::size_t b) {
            const std::string& left = objects_[a].pci_busid;
            const std::string& right = objects_[b].pci_busid;
            if (left.empty() || right.empty()) return !left.empty() && right.empty();
            return left.size() != right.size() ? left.size() < right.size() : left < right;
        });
        for (std::size_t gpu = 0; gpu < gpus_.size(); ++gpu) {
            gpu_of_[gpus_[gpu]] = gpu;
            const std::string& bus = objects_[gpus_[gpu]].pci_busid;
            if (gpu > 0 && !bus.empty() && bus == objects_[gpus_[gpu - 1]].pci_busid)
                return error("two GPUs at " + bus);
        }
        return {};
    }

    void add_gpu(std::size_t object, const Object& device) {
        if (gpu_of_.contains(object)) return;  // a second slice or back end of the same GPU
        gpu_of_[object] = gpus_.size();
        gpus_.push_back(object);
        if (!device.model.empty()) objects_[object].model = device.model;
    }

    /// The nearest object that is not I/O.
    std::size_t locality_of(std::size_t object) const {
        while (object != nowhere) {
            const std::string& type = objects_[object].type;
            if (type != "OSDev" && type != "PCIDev" && type != "Bridge" && type != "Misc") break;
            object = objects_[object].parent;
        }
        return object;
    }

    void describe(std::size_t index) {
        const Object& object = objects_[gpus_[index]];
        Gpu& gpu = graph_.gpu(static_cast<int>(index));
        gpu.pci_bus_id = object.pci_busid;
        gpu.model = object.model;
        const std::size_t near = locality_of(gpus_[index]);
        if (near == nowhere) return;
        gpu.numa = numa_of(near);
        // The whole of a machine with several NUMA nodes is no locality.
        if (gpu.numa < 0 && objects_[near].parent == nowhere) return;
        if (const auto cpus = parse_set(objects_[near].cpuset)) gpu.cpus = list_of(*cpus);
    }

    int numa_of(std::size_t object) const {
        if (const auto nodes = parse_set(objects_[object].nodeset))
            return nodes->size() == 1 ? static_cast<int>(nodes->front()) : -1;
        // hwloc 1 writes no node sets where there is nothing to tell apart, and NUMA nodes enclose.
        for (; object != nowhere; object = objects_[object].parent) {
            if (objects_[object].type != "NUMANode") continue;
            const auto index = parse_integer(objects_[object].os_index);
            return index && *index >= 0 && *index < 65536 ? static_cast<int>(*index) : -1;
        }
        return -1;
    }

    // --- the NICs
    /// The type is a number in hwloc 1 and 2, a sum of flags in hwloc 3.
    bool is_nic(const Object& object, bool openfabrics) const {
        if (object.type != "OSDev") return false;
        const auto type = parse_integer(object.osdev_type);
        if (!type) return false;
        if (flags_of_types_) return (*type & (openfabrics ? 32 : 16)) != 0;
        return *type == (openfabrics ? 3 : 2);
    }

    /// Where a node has OpenFabrics devices, its Ethernet ports are for its administration. Several
    /// devices on one PCI function are one NIC.
    void find_nics() {
        std::set<std::size_t> seen;
        for (const bool openfabrics : {true, false}) {
            for (std::size_t i = 0; i < objects_.size(); ++i) {
                const std::size_t pci = pci_device_of(i);
                if (!is_nic(objects_[i], openfabrics) || pci == nowhere ||
                    graph_.nics().size() == most_nics || !seen.insert(pci).second)
                    continue;
                Nic nic;
                nic.name = printable(objects_[i].name);
                const auto same = [&nic](const Nic& each) { return each.name == nic.name; };
                if (nic.name.empty() ||
                    std::any_of(graph_.nics().begin(), graph_.nics().end(), same))
                    continue;
                nic.pci_bus_id = objects_[pci].pci_busid;
                nic.numa = numa_near(pci);
                for (const std::size_t gpu : gpus_) nic.paths.push_back(path_between(pci, gpu));
                graph_.add_nic(std::move(nic));
            }
            if (!graph_.nics().empty()) return;
        }
    }

    // --- how they are joined
    int numa_near(std::size_t object) {
        const auto [known, fresh] = numa_near_.try_emplace(object, -1);
        if (!fresh) return known->second;
        const std::size_t near = locality_of(object);
        if (near != nowhere) known->second = numa_of(near);
        return known->second;
    }

    PciPath path_between(std::size_t a, std::size_t b) {
        std::vector<std::size_t> above;  // of a, from the bottom
        for (std::size_t i = objects_[a].parent; i != nowhere; i = objects_[i].parent)
            above.push_back(i);
        std::size_t bridges = 0;  // below the common ancestor, on the longer side
        std::size_t common = objects_[b].parent;
        auto found = std::find(above.begin(), above.end(), common);
        while (common != nowhere && found == above.end()) {
            ++bridges;
            common = objects_[common].parent;
            found = std::find(above.begin(), above.end(), common);
        }
        if (common == nowhere) return PciPath::unknown;
        bridges = std::max(bridges, static_cast<std::size_t>(found - above.begin()));
        const Object& meeting = objects_[common];
        if (meeting.type == "Bridge" && meeting.bridge_type.starts_with("0-")) return PciPath::phb;
        // A PCIe switch is one bridge up and one down for each of its ports.
        if (meeting.type == "Bridge") return bridges <= 1 ? PciPath::pix : PciPath::pxb;
        const int numa_a = numa_near(a);
        const int numa_b = numa_near(b);
        if (numa_a >= 0 && numa_b >= 0) return numa_a == numa_b ? PciPath::node : PciPath::sys;
        return meeting.parent == nowhere ? PciPath::unknown : PciPath::node;
    }

    Status add_links(const Distances& distances) {
        const std::size_t n = distances.count;
        const char* const what = distances.is_nvlink ? "NVLinkBandwidth" : "XGMIBandwidth";
        if (n == 0 || n > most_joined_objects || distances.indexes.size() != n ||
            distances.values.size() != n * n) {
            return error(std::string(what) + " of " + std::to_string(n) + " objects has " +
                         std::to_string(distances.indexes.size()) + " indexes and " +
                         std::to_string(distances.values.size()) +
                         " values: n and n squared are right, n at most " +
                         std::to_string(most_joined_objects));
        }
        std::vector<std::size_t> gpu(n, nowhere);
        std::vector<bool> is_switch(n, false);
        for (std::size_t i = 0; i < n; ++i) {
            const std::string key = distances.type.empty()
                                        ? distances.indexes[i]
                                        : distances.type + ":" + distances.indexes[i];
            const auto object = by_index_.find(key);
            if (object == by_index_.end()) continue;
            gpu[i] = gpu_at(object->second);
            // NVLink also ends in NVSwitches, which are PCI devices, and on POWER in processors.
            is_switch[i] = gpu[i] == nowhere && objects_[object->second].type == "PCIDev";
        }
        for (std::size_t i = 0; i < n; ++i) {
            for (std::size_t j = i + 1; j < n; ++j) {
                if (gpu[i] != nowhere && gpu[j] != nowhere)
                    add_link(gpu[i], gpu[j], distances.mbps(i, j), distances.is_nvlink);
            }
        }
        add_switched_links(distances, gpu, is_switch);
        return {};
    }

    std::size_t gpu_at(std::size_t object) const {
        const std::size_t pci = pci_device_of(object);
        const auto gpu = gpu_of_.find(pci == nowhere ? object : pci);
        return gpu == gpu_of_.end() ? nowhere : gpu->second;
    }

    /// Two GPUs at the switches are joined at the rate of the slower one. The matrix shows neither
    /// how the switches are joined nor the second board of a DGX-2 from the first; all NVSwitches
    /// of a node are one fabric, as hwloc takes them too
    /// (HWLOC_DISTANCES_TRANSFORM_MERGE_SWITCH_PORTS and TRANSITIVE_CLOSURE).
    void add_switched_links(const Distances& distances, const std::vector<std::size_t>& gpu,
                            const std::vector<bool>& is_switch) {
        std::vector<std::uint64_t> rate(gpus_.size(), 0);
        for (std::size_t i = 0; i < distances.count; ++i) {
            for (std::size_t j = 0; gpu[i] != nowhere && j < distances.count; ++j) {
                if (is_switch[j]) rate[gpu[i]] += distances.mbps(i, j);
            }
        }
        for (std::size_t a = 0; a < rate.size(); ++a) {
            for (std::size_t b = a + 1; b < rate.size(); ++b) {
                const std::uint64_t slower = std::min(rate[a], rate[b]);
                if (slower == 0) continue;
                add_link(a, b, slower, distances.is_nvlink);
                graph_.set_switched(true);
            }
        }
    }

    /// hwloc gives the sum over the links of a pair. NVLink runs at 20 GB/s on P100 and at 25
    /// since, and P100 has no more than four, so the number of links follows.
    void add_link(std::size_t a, std::size_t b, std::uint64_t mbps, bool nvlink) {
        if (a == b || mbps == 0) return;
        GpuLink link = graph_.link(static_cast<int>(a), static_cast<int>(b));
        const double gbps = static_cast<double>(mbps) / 1000;
        if (gbps <= link.link_gbps) return;
        link.link_gbps = gbps;
        link.links = 1;
        if (nvlink && mbps % 25000 == 0) link.links = static_cast<int>(mbps / 25000);
        if (nvlink && mbps % 25000 != 0 && mbps % 20000 == 0)
            link.links = static_cast<int>(mbps / 20000);
        graph_.set_link(static_cast<int>(a), static_cast<int>(b), link);
    }

    std::string name_;
    bool flags_of_types_ = false;  // of OS devices, in hwloc 3
    std::string_view in_;          // the innermost open element while it has had no child
    std::vector<Object> objects_;
    std::vector<Distances> distances_;
    std::vector<std::size_t> gpus_;                          // objects, by GPU
    std::unordered_map<std::size_t, std::size_t> gpu_of_;    // object -> GPU
    std::unordered_map<std::size_t, int> numa_near_;         // what has been asked for
    std::unordered_map<std::string, std::size_t> by_index_;  // "OSDev:802" -> object
    GpuGraph graph_;
};

}  // namespace

Result<GpuGraph> read_hwloc_xml(std::string_view text, std::string_view name) {
    return Machine(name).read(text);
}

}  // namespace sluice
