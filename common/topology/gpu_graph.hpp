// SPDX-License-Identifier: GPL-2.0-or-later
//
// The GPUs of one node class and how they are joined.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/file.hpp"
#include "common/base/gpu_set.hpp"
#include "common/base/result.hpp"

namespace sluice {

/// How two GPUs reach each other without a direct link, worst first; the names are those of
/// `nvidia-smi topo -m`. `unknown` stands where a source says nothing, and counts as sys.
enum class PciPath { unknown, sys, node, phb, pxb, pix };

/// GB/s in one direction that one ring gets over such a path: PCIe 3.0 x16 under one switch, less
/// with every bridge, least between sockets. NCCL's topology search counts the ends alike (12 for
/// PCIe 3.0 x16, 6 and more between sockets); the order is what matters, not the last digit.
double path_bandwidth_gbps(PciPath path);

/// "SYS", "NODE", "PHB", "PXB", "PIX", and "?" for unknown.
const char* path_name(PciPath path);

struct Gpu {
    std::string pci_bus_id;  ///< "0000:06:00.0", or empty where the source does not know it
    std::string model;       ///< "Tesla V100-SXM2-16GB", or empty
    int numa = -1;           ///< NUMA node by OS index, -1 where unknown
    std::string cpus;        ///< OS indices, "0-19,40-59", or empty
    int minor = -1;          ///< N of /dev/nvidiaN, by which Slurm knows it; -1 where unknown

    friend bool operator==(const Gpu&, const Gpu&) = default;
};

/// A port to other nodes.
struct Nic {
    std::string name;            ///< "mlx5_0"
    std::string pci_bus_id;      ///< as in Gpu
    int numa = -1;               ///< as in Gpu
    std::vector<PciPath> paths;  ///< to each GPU

    friend bool operator==(const Nic&, const Nic&) = default;
};

/// One edge of the complete graph over the GPUs.
struct GpuLink {
    int links = 0;         ///< direct links (NVLink, XGMI) between the two
    double link_gbps = 0;  ///< GB/s in one direction of all of them together
    PciPath path = PciPath::unknown;

    /// What one ring over this edge gets: the direct links where there are any, else the path.
    double gbps() const { return links > 0 ? link_gbps : path_bandwidth_gbps(path); }

    friend bool operator==(const GpuLink&, const GpuLink&) = default;
};

class GpuGraph {
  public:
    explicit GpuGraph(int count = 0);

    int size() const { return static_cast<int>(gpus_.size()); }
    const Gpu& gpu(int index) const { return gpus_[static_cast<std::size_t>(index)]; }
    Gpu& gpu(int index) { return gpus_[static_cast<std::size_t>(index)]; }
    /// Symmetric; link(i, i) has no meaning.
    const GpuLink& link(int a, int b) const { return links_[at(a, b)]; }
    void set_link(int a, int b, const GpuLink& link);

    /// True where direct links end in a switch (NVSwitch): a GPU reaches every other one at its
    /// full rate, but all its traffic shares that rate. Readers set it.
    bool switched() const { return switched_; }
    void set_switched(bool switched) { switched_ = switched; }

    /// In the order of the source; empty where it names none.
    const std::vector<Nic>& nics() const { return nics_; }
    /// nic.paths has one entry a GPU.
    void add_nic(Nic nic) { nics_.push_back(std::move(nic)); }

    /// True where GPUs are of different models, as far as these are known.
    bool mixed(GpuSet set) const;

    /// False where the source gave neither links nor paths nor NUMA nodes (a matrix of zeros): then
    /// any set is as good as any other as far as we know.
    bool informative() const;

    friend bool operator==(const GpuGraph&, const GpuGraph&) = default;

  private:
    std::size_t at(int a, int b) const;

    std::vector<Gpu> gpus_;
    std::vector<GpuLink> links_;
    std::vector<Nic> nics_;
    bool switched_ = false;
};

/// How near the ports of a node are to a set of its GPUs. A ring over several nodes enters and
/// leaves each through a NIC, and NCCL has as many as there are NICs on the nearest level
/// (NCCL's topology search compares paths by type first). Larger is better.
struct NicAffinity {
    PciPath path = PciPath::unknown;  ///< the best from any GPU of the set to any NIC
    int nics = 0;                     ///< that are reached by such a path

    // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 sees a pointer in what is generated
    friend auto operator<=>(const NicAffinity&, const NicAffinity&) = default;
};
/// All zero for an empty set and where no path to a NIC is known.
NicAffinity nic_affinity(const GpuGraph& graph, GpuSet set);

/// GB/s in one direction of one direct link when the source gives only their number: NVLink of
/// V100, A100 and H100 (NVIDIA's data sheets: 25 in each direction).
inline constexpr double default_link_gbps = 25.0;

/// What every reader ends with. A pair with neither links nor a path gets node or sys where the
/// NUMA nodes of both are known. A GPU whose links to all others add up to more than the 18 ports
/// that the largest NVLink GPU has cannot reach them directly: the graph becomes switched().
void complete_graph(GpuGraph& graph);

/// The text of `nvidia-smi topo -m`: a header row, one row a GPU, with NICs, CPU Affinity and NUMA
/// Affinity columns as they may come; blank separated or tab separated; colour codes, what stands
/// around the matrix, and the legend but for the names of NICs are skipped. Errors name the line
/// and what stands there. `name` stands in messages for the file.
Result<GpuGraph> read_topo_matrix(std::string_view text, std::string_view name);

/// hwloc XML (`lstopo --of xml`), 1.x, 2.x and 3.x: GPUs are the NVML, else CUDA, RSMI, Level Zero
/// or OpenCL OS devices, else the display and accelerator PCI devices, in the order of their PCI
/// bus ids; links from hwloc's NVLinkBandwidth / XGMIBandwidth distances; paths from the common
/// ancestor in the PCI tree; GPUs without a NUMA parent are kept. Several devices on one PCI
/// function (MIG slices) are one GPU. NICs are the OpenFabrics devices, else those of networks. A
/// file without GPUs is not_found.
///
/// The reader is our own: libhwloc 2 refuses what hwloc 3 writes, and loading it would bring its
/// plugins (CUDA, NVML, OpenCL) into the daemon that reads the file.
Result<GpuGraph> read_hwloc_xml(std::string_view text, std::string_view name);

/// One GPU as gres.conf tells it: Links ("-1,2,1,0": direct links to each GPU, -1 itself; may be
/// empty) and Cores (core indices "0-7"; may be empty). GPUs with cores in common are taken to
/// share a NUMA node; these are numbered by their lowest core.
struct GresDevice {
    std::string links;
    std::string cores;
    std::string type;  ///< Type=, becomes Gpu::model
};
/// A MIG slice among them (Type=1g.10gb) is not_found: slices have no peers.
/// All zero links and no cores give a graph that is not informative(), no error; a row with too
/// many or too few numbers is an error that names the GPU.
Result<GpuGraph> graph_of_gres(const std::vector<GresDevice>& devices);

/// The Name=gpu lines of a gres.conf(5) for one class of nodes: the devices in the order of their
/// lines, as many a line as File= or Count= say.
Result<GpuGraph> read_gres_conf(std::string_view text, std::string_view name);

/// The text form that Sluice writes itself (doc/formats/topology-v1.txt).
Result<GpuGraph> read_topology_text(std::string_view text, std::string_view name);

/// A graph as that text; read_topology_text() gives the same graph back where a reader made it.
std::string to_text(const GpuGraph& graph);

/// Reads a topology file of any of the kinds above, told apart by content. At most 16 MiB.
/// not_found where the file is not there.
Result<GpuGraph> read_topology_file(const std::string& path, FileKind kind = FileKind::ordinary);

/// The same for a text already read.
Result<GpuGraph> read_topology(std::string_view text, std::string_view name);

/// All that the choice of GPUs depends on: links, paths and switch; models where there are several;
/// the paths to NICs where one of them is nearer to one GPU than to another. Nodes with the same
/// fingerprint share one table.
std::string fingerprint(const GpuGraph& graph);

}  // namespace sluice
