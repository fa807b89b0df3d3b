/**
 * The registry of judges: every script that compares hyperkube with something outside this repository, or measures it,
 * and that `npm test` does not run. `npm run judges` runs them and keeps their last results in docs/judges.md.
 */

export interface Judge {
  readonly name: string
  /** The heading of the page below which it stands. */
  readonly area: string
  /** One sentence for the page. */
  readonly shows: string
  /** The script and its arguments, below the repository. */
  readonly command: readonly string[]
  /** Folders below `src`. A commit that changes one of them makes the last result old. */
  readonly rooms: readonly string[]
  readonly needs: readonly Need[]
  /** An estimate for two cores; the page has the measured time. */
  readonly minutes: number
}

export type Need =
  | 'root'
  | 'facts'
  | 'go'
  | 'etcd'
  | 'containers'
  | 'networks'
  | 'sshd'
  | 'tmux'
  | 'kubectl'
  | 'dnsperf'
  | 'wine'
  | 'vm'
  | 'slapd'
  | 'chromium'

interface Requirement {
  /** The program or file that shows that the requirement is met. */
  readonly program: string
  /** Debian packages that bring it; none: it cannot be installed from there. */
  readonly packages: readonly string[]
}

const CONTAINERS = [
  'containerd',
  'runc',
  'containernetworking-plugins',
  'iptables',
  'iproute2',
  'nftables',
  'conntrack',
]

/** The programs that judges need. `root` and `facts` (interface facts beside the repository) have no program. */
export const REQUIREMENTS: Readonly<Record<Need, Requirement | undefined>> = {
  root: undefined,
  facts: undefined,
  go: { program: 'go', packages: [] },
  etcd: { program: 'etcd', packages: ['etcd-server', 'etcd-client'] },
  containers: { program: 'containerd', packages: CONTAINERS },
  networks: { program: 'tcpdump', packages: ['iproute2', 'nftables', 'iptables', 'conntrack', 'tcpdump'] },
  sshd: { program: '/usr/sbin/sshd', packages: ['openssh-server', 'openssh-client'] },
  tmux: { program: 'tmux', packages: ['tmux', 'vim-tiny'] },
  kubectl: { program: 'kubectl', packages: ['kubernetes-client'] },
  dnsperf: { program: 'dnsperf', packages: ['dnsperf', 'util-linux'] },
  wine: { program: 'wine', packages: ['wine', 'wine64'] },
  slapd: { program: '/usr/sbin/slapd', packages: ['slapd', 'ldap-utils'] },
  chromium: { program: 'chromium', packages: ['chromium'] },
  vm: {
    program: 'qemu-system-x86_64',
    packages: ['qemu-system-x86', 'linux-image-cloud-amd64', 'debootstrap', 'e2fsprogs', 'openssh-client'],
  },
}

/** `server` in the table: the rooms of the API server. */
const SERVER = [
  'apiserver',
  'auth',
  'admission',
  'apiextensions',
  'aggregation',
  'resources',
  'model',
  'meta',
  'control-plane',
]

/** name | minutes | needs | rooms | script below `test` and its arguments, and on the next line what it shows. */
const TABLE = `
# Conformance
conformance | 110 | root go containers | server kubelet cri containerd network proxy dns controllers reconcile scheduler | conformance/main.ts
  All of upstream's conformance tests pass on hyperkube up; docs/conformance.md has each test
conformance-etcd | 15 | go | server storage | conformance/main.ts --needs api --datastore etcd
  Upstream's conformance tests of the API pass with etcd as the store
conformance-reference | 15 | go | controllers reconcile scheduler | conformance/main.ts --reference
  Our controllers and scheduler pass upstream's conformance tests beside upstream's kube-apiserver
conformance-through-server | 15 | go | management cluster-agent lib | conformance/main.ts --needs api --through-server
  Upstream's conformance tests of the API pass through hyperkube server, on our cluster
management-story | 15 | root go etcd sshd containers networks | management cluster-agent provision lib | upstream/management-story.ts
  An imported, a built and a local cluster in one server: rights of a member, a killed server, agents that return
console | 3 | go etcd chromium | console component management cluster-agent lib | upstream/console.ts
  People manage an imported cluster of upstream's in the web console: import, rollouts, conflicts, new kinds, rights that end
management-watches | 2 | - | management cluster-agent lib/tunnel lib/http component | upstream/management-watches.ts
  1,000 watches through hyperkube server see every change once and in order
identity-providers | 1 | slapd | management cluster-agent/api-auth lib/http lib/jwt | upstream/identity-providers.ts
  Debian's slapd and npm's oidc-provider log users in to hyperkube server, and their groups give rights
remotedialer | 3 | go | management cluster-agent lib/tunnel lib/http | upstream/remotedialer.ts
  Rancher's remotedialer connects as the agent of a cluster and carries requests, watches and copies
conformance-imported | 28 | go | management cluster-agent lib | conformance/main.ts --reference --through-server
  Upstream's conformance tests of the API and of controllers pass through hyperkube server, on upstream's kube-apiserver

# API server
openapi | 3 | go | server | upstream/openapi.ts
  Discovery and OpenAPI documents equal those of upstream's kube-apiserver
odd-requests | 5 | go | server | upstream/odd-requests.ts
  Odd requests get the same answers from upstream's kube-apiserver and ours, byte for byte
server-metrics | 3 | go | server | upstream/metrics.ts
  Metric families and health checks of kube-apiserver equal upstream's
webhooks | 6 | go | admission apiserver | upstream/webhooks.ts
  Admission webhooks get the same requests, and their answers have the same effect, as with upstream's kube-apiserver
policies | 5 | go | admission cel model/custom admission/policies | upstream/policies.ts
  Admission policies give the same answers as upstream's kube-apiserver
apiextensions | 20 | go | apiextensions model apiserver | upstream/apiextensions.ts
  Integration tests of upstream's apiextensions-apiserver pass on our server
aggregation | 3 | go | aggregation apiserver | upstream/aggregation.ts
  Upstream's sample-apiserver works behind our server
extension-conformance | 10 | go root | aggregation admission apiextensions | upstream/extension-conformance.ts
  Upstream's conformance tests of aggregation and webhooks pass with processes in place of pods
controller-runtime | 6 | go root | server | upstream/controller-runtime.ts
  An operator made with controller-runtime gets the same answers from both servers
cert-manager | 8 | go root | server | upstream/cert-manager.ts
  cert-manager's own programs work on our server
envtest | 15 | go | server cmd | upstream/envtest.ts
  controller-runtime's own suites pass with \`hyperkube assets\`
memcached | 5 | go | server cmd | upstream/memcached.ts
  A kubebuilder operator's envtest suite passes unchanged
helm | 5 | go | server controllers reconcile | upstream/helm.ts
  Helm 3 installs, upgrades, rolls back, tests and uninstalls a chart
newcomer | 6 | kubectl tmux | cluster cmd controllers reconcile scheduler kubelet/pod simulated-node | upstream/newcomer.ts
  A newcomer's first fifty steps succeed: npm start, a Deployment, Ctrl-C, a second start

# CEL
cel | 1 | facts | cel | upstream/cel.ts
  Recorded CEL expressions have upstream's errors, types, estimates, values and costs
cel-rules | 1 | facts | cel model/custom admission/policies | upstream/cel-rules.ts
  Recorded validation rules of custom resources have upstream's errors, warnings and costs
cel-spec | 4 | go | cel | upstream/cel-spec.ts
  cel-spec's conformance data gives the same results as cel-go in Kubernetes' environment
cel-texts | 4 | go | cel model/custom admission/policies | upstream/cel-texts.ts
  Malformed CEL texts get upstream's compile errors, to the letter

# Controllers and scheduler
scenarios | 40 | go | controllers reconcile | upstream/scenarios.ts
  Objects, conditions and events of 143 scenarios equal those of upstream's kube-controller-manager
controllers | 5 | go | server | upstream/controllers.ts
  Upstream's kube-controller-manager and kube-scheduler work on our server under churn
hashes | 2 | go | controllers reconcile | upstream/hashes.ts
  ReplicaSets and ControllerRevisions have the names that upstream's controller manager gives them
manager-metrics | 4 | go | controllers reconcile | upstream/manager-metrics.ts
  Metric families of kube-controller-manager equal upstream's
cloud-controllers | 6 | go | cloud reconcile | upstream/cloud-controllers.ts
  cloud-controller-manager treats nodes, Services and the cloud as upstream's does
scheduling | 8 | go | scheduler | upstream/scheduling.ts
  Random pods get the nodes, scores, victims and messages that upstream's kube-scheduler gives them
devices | 6 | go | scheduler | upstream/devices.ts
  Random resource claims get the devices that upstream's kube-scheduler gives them
gangs | 6 | go | scheduler | upstream/gangs.ts
  Random pod groups are scheduled as upstream's kube-scheduler schedules them
extenders | 3 | go | scheduler | upstream/extenders.ts
  A scheduler extender gets the same requests as from upstream's kube-scheduler
scheduler-metrics | 3 | go | scheduler | upstream/scheduler-metrics.ts
  Metric families of kube-scheduler equal upstream's
program-flags | 4 | go | component/flags cmd kubelet/configuration proxy controllers | upstream/program-flags.ts
  The recorded flags of upstream's programs, which unit tests compare ours with, are those of their help

# kubectl
kubectl | 60 | go | kubectl client kustomize | upstream/kubectl.ts
  5,113 command lines print the same and exit the same as with upstream's kubectl
kubectl-help | 2 | go | kubectl | upstream/kubectl-help.ts
  Commands, aliases, usage, flags and defaults equal those of upstream's kubectl
kubectl-config | 3 | go | kubectl/config client | upstream/kubectl-config.ts
  kubectl config leaves the same files and output as upstream's
kubectl-printers | 3 | go | kubectl | upstream/kubectl-printers.ts
  Random JSONPath, templates and tables print as with upstream's packages
kubectl-servers | 12 | go | server | upstream/kubectl-servers.ts
  kubectl shows every kind of our server as it shows upstream's
kubectl-terminal | 20 | root go containers tmux | kubectl | upstream/kubectl-terminal.ts
  Both kubectls look the same at a terminal: sessions, editors, watches, Ctrl-C
kubectl-e2e | 30 | root go containers | kubectl | upstream/kubectl-e2e.ts
  Upstream's tests of kubectl pass with ours on containers
kubectl-large | 6 | go | kubectl client kustomize | upstream/kubectl-large.ts
  Time and memory of both kubectls with 10,000 pods
kubectl-start | 4 | go | kubectl client kustomize | upstream/kubectl-start.ts
  Start time of both kubectls
kustomize | 3 | go | kustomize | upstream/kustomize.ts
  150 kustomizations build byte for byte as with upstream's kubectl

# Nodes
containers | 8 | root go containers kubectl tmux | kubelet cri containerd kubectl | upstream/containers.ts
  run, logs, exec, cp, attach, port-forward, top and debug work on real containers with three kubectls
containers-through-server | 8 | root go containers kubectl tmux | management cluster-agent lib | upstream/containers.ts --through-server
  exec, logs -f, cp, attach and port-forward of three kubectls work through hyperkube server and its agent
kubelet-node | 4 | root go containers | kubelet cri containerd | upstream/kubelet-node.ts
  Both kubelets describe the same machine alike: Node, Lease, CSINode, events, configuration
kubelet-metrics | 5 | root go containers | kubelet cri containerd | upstream/kubelet-metrics.ts
  Metric families of both kubelets are the same
kubelet-pulls | 6 | root go containers | kubelet cri containerd | upstream/kubelet-pulls.ts
  Both kubelets treat private registries alike
kubelet-topology | 8 | root go containers | kubelet cri containerd | upstream/kubelet-topology.ts
  Both kubelets grant CPUs and memory alike under each topology policy
kubelet-speed | 12 | root go containers | kubelet cri containerd | upstream/kubelet-speed.ts
  How fast pods start, and what each kubelet uses
kubelet-inside | 12 | root go containers | kubelet cri containerd cluster | upstream/kubelet-inside.ts
  Memory that the kubelet takes inside hyperkube up
pod-certificates | 5 | root go containers | kubelet cri containerd | upstream/pod-certificates.ts
  Upstream's tests of podCertificate projections pass
cgroup-v2 | 70 | root go vm | kubelet cri containerd | upstream/cgroup-v2.ts
  The kubelet works on cgroup v2 and survives a reboot and a power cut
systemd-slices | 12 | root vm | kubelet/cgroups | upstream/systemd-slices.ts
  Slices of pods exist, are limited and go away on a real systemd

# Network
dns | 10 | root go dnsperf | dns | upstream/dns.ts
  Cluster DNS answers as CoreDNS does; queries a second and memory beside it
coredns-addon | 8 | root go containers | dns cluster | upstream/coredns-addon.ts
  CoreDNS replaces our name server in a running cluster, and back
kube-proxy | 10 | root go networks | proxy | upstream/kube-proxy.ts 1000 10
  Time, memory and processor use of kube-proxy beside upstream's, nftables mode
kube-proxy-iptables | 6 | root go networks | proxy | upstream/kube-proxy-iptables.ts
  iptables rules equal those of upstream's kube-proxy, line by line
network-policies | 40 | root go containers | network | upstream/network-policies.ts
  Upstream's tests of NetworkPolicy pass
network-faults | 15 | root go networks | network proxy dns | upstream/network-faults.ts
  Pods keep their network while daemons die and rules are flushed
three-nodes | 12 | root go containers networks | network proxy dns kubelet cri containerd | upstream/three-nodes.ts
  Three nodes: VXLAN, Services, DNS, a lost node, a drain
dual-stack | 8 | root go containers networks | network proxy dns cluster | upstream/dual-stack.ts
  Pods, Services and DNS work over IPv4 and IPv6
flannel | 8 | root go networks | network | upstream/flannel.ts
  flannel's own daemon and ours share one network
sctp | 5 | root go networks | network proxy dns | upstream/sctp.ts
  SCTP works through Services and network policies

# Builder and supervisor
build | 40 | root containers etcd sshd networks | provision supervisor cmd/build | upstream/build.ts --control-planes 3 --workers 3 --life nodes,kill,upgrade,snapshot,certificates,encryption
  hyperkube build makes a cluster of seven machines, and the cluster survives what happens in its life
build-local | 8 | root containers etcd sshd networks | provision supervisor cmd/build | upstream/build.ts --local
  hyperkube build --local makes a cluster of this machine
build-addons | 15 | root go containers etcd sshd networks | provision supervisor cmd/build ingress dns | upstream/build-addons.ts
  Addons of hyperkube build work and can be removed
build-machines | 40 | root etcd vm | provision supervisor cmd/build | upstream/build-machines.ts
  hyperkube build survives a power cut on virtual machines with systemd
management-builds | 12 | root containers etcd sshd networks | management provision cmd/management | upstream/management-builds.ts
  hyperkube server builds a cluster over SSH and continues after kill -9. Machines join and leave, etcd is restored, certificates and keys are rotated, nodes are upgraded with drains, and all of it is removed
management-machines | 8 | root containers etcd sshd networks | management provision supervisor cmd/node | upstream/management-machines.ts
  hyperkube server builds a cluster on machines that it cannot reach, through the tunnels of their agents
node-join | 10 | root containers etcd sshd networks | provision supervisor cmd/build | upstream/node-join.ts
  Machines join a built cluster through hyperkube node agent
wine | 6 | wine | supervisor lib cmd | upstream/wine.ts
  The bundle runs under Wine as far as Wine goes

# Reliability
store-sqlite | 10 | root | storage | reliability/main.ts --backend sqlite --runs 100
  The SQLite store keeps its promises under faults, and the harness finds seeded defects
store-etcd | 10 | root etcd | storage | reliability/main.ts --backend etcd --runs 50
  The etcd store keeps its promises under faults
store-defects | 10 | - | storage | reliability/main.ts --defect all --runs 40
  The reliability harness finds every seeded defect
bit-flips | 5 | - | storage | reliability/bit-flips.ts --times 200
  A flipped bit in the store is reported or harmless
durability | 10 | - | storage | reliability/durability.ts --backend sqlite --fault kill --times 200
  Acknowledged writes survive 200 kills
hostile | 12 | - | server | reliability/main.ts hostile
  Well-behaved clients are served while others attack the API server
fuzz | 6 | - | server | reliability/main.ts fuzz
  10,000 random requests get no 500 and hold the event loop for no longer than allowed
request-cost | 60 | - | server | reliability/main.ts cost --requests 10000 --seed 1
  10,000 random large requests hold the event loop for at most 100 ms and allocate at most 64 MB each
server-kills | 8 | - | server storage | reliability/main.ts kills --times 100
  kube-apiserver loses nothing over 100 kills
server-stops | 3 | - | apiserver control-plane | reliability/main.ts terms --times 20
  kube-apiserver ends in order on SIGTERM under load
history-kills | 20 | - | server storage history | reliability/main.ts history --seconds 600 --every 20 --samples 1000
  The history has every change over 30 kills: 1,000 past states equal the lists of their time
manager-kills | 15 | - | controllers reconcile | reliability/main.ts managers
  Controllers keep their promises over 100 kills of the controller manager
cluster-kills | 25 | - | cluster controllers reconcile scheduler storage | reliability/main.ts clusters
  A cluster keeps its promises over 200 kills of the whole process
scheduler-kills | 10 | - | scheduler | reliability/schedulers.ts 50
  Every pod is bound once while 50 leaders are killed
kubelet-kills | 20 | root containers | kubelet cri containerd | reliability/kubelets.ts kills
  No container is lost or doubled over 30 kills of the kubelet and 10 of containerd
kubelet-faults | 20 | root go containers | kubelet cri containerd | reliability/kubelets.ts disk cut hang
  Both kubelets behave alike on a full disk, a cut network and a hanging runtime
management-load | 3 | - | management cluster-agent component lib | reliability/management-load.ts
  hyperkube server serves 100 users and 200 clusters while agents, tunnels and the server are killed
management-defences | 15 | - | management cluster-agent component/forwarding lib/tunnel | reliability/management-defences.ts
  Each defence of hyperkube server against an attack is missed by a test when it is disabled
worker-kills | 25 | root containers networks | supervisor | reliability/worker.ts
  The supervisor restarts a worker's processes in order over 200 rounds of kills
test-suite | 600 | root | - | reliability/main.ts suite
  npm test passes 30 times on busy cores

# Benches
bench-apiserver | 20 | go | server storage | bench/main.ts apiserver --reference
  kube-apiserver beside upstream's with etcd: reads, lists, writes, watches, starts, memory
bench-turns | 5 | go | server storage | bench/main.ts turns --reference
  CREATE on both servers in turns, with 1, 16 and 64 clients
bench-history | 5 | - | server storage history | bench/main.ts history
  CREATE without and with a history, and the thread of the history at 100 writes a second
bench-controllers | 15 | go | controllers reconcile client | bench/main.ts controllers --reference
  kube-controller-manager beside upstream's: time and memory
bench-scheduler | 25 | go | scheduler client | bench/main.ts scheduler --reference
  kube-scheduler beside upstream's: pods a second, processor time, memory
bench-scale | 30 | go | cluster kubelet/pod simulated-node controllers reconcile scheduler storage | bench/main.ts scale --reference
  5,000 simulated nodes and 10,000 pods beside kwok
bench-testing | 2 | - | testing cluster storage | bench/main.ts testing
  startCluster(), fork() and a virtual week in hyperkube/testing
bench-idle | 7 | - | cluster client | bench/main.ts idle
  Processor time and memory of a cluster at rest
bench-start | 3 | - | cmd cluster | bench/main.ts start
  Start time of each program
bench-storage | 8 | etcd | storage | bench/main.ts storage
  Durable writes and memory of the store beside etcd
bench-codec | 4 | - | meta apis | bench/main.ts codec
  Encoding and decoding of objects
bench-lib | 4 | - | lib | bench/main.ts lib
  Data structures and parsers
bench-custom | 6 | - | apiextensions model | bench/main.ts custom
  Cost of large custom resource definitions and their objects
bench-node | 6 | root containers | kubelet cri containerd | bench/main.ts node
  Start time of pods on containers
bench-flood | 5 | - | apiserver | bench/main.ts flood
  How long well-behaved clients wait while one floods the server
bench-cel | 4 | go | cel | bench/main.ts cel --reference
  CEL evaluations a second beside cel-go
bench-tunnel | 1 | - | lib/tunnel lib/http | bench/main.ts tunnel
  Copies through a tunnel, and small requests beside them
bench-management | 2 | - | management cluster-agent lib/tunnel lib/http component | bench/main.ts management
  Requests to a cluster through hyperkube server beside direct ones
bench-console | 4 | chromium | console component apiserver | bench/main.ts console
  Lists of 50,000 pods in a browser, and 500 updates a second
bench-network-policies | 4 | root networks | network | bench/network-policies.ts
  How long a changed policy takes to reach the kernel
`

const ROW = /^([\w-]+) \| (\d+) \| (.+?) \| (.+?) \| (.+)$/

export const JUDGES: readonly Judge[] = parseTable(TABLE)

function parseTable(table: string): Judge[] {
  const judges: Judge[] = []
  let area = ''
  const lines = table.split('\n').filter((line) => line !== '')
  for (const [at, line] of lines.entries()) {
    if (line.startsWith('# ')) area = line.slice(2)
    if (line.startsWith('# ') || line.startsWith('  ')) continue
    const [, name = '', minutes, needs = '', rooms = '', command = ''] = ROW.exec(line) ?? []
    if (name === '') throw new Error(`Malformed row of the registry of judges: ${line}`)
    judges.push({
      name,
      area,
      shows: lines[at + 1]?.trim() ?? '',
      minutes: Number(minutes),
      command: `test/${command}`.split(' '),
      rooms: words(rooms).flatMap((room) => (room === 'server' ? SERVER : [room])),
      needs: words(needs) as Need[],
    })
  }
  return judges
}

function words(cell: string): string[] {
  return cell === '-' ? [] : cell.split(' ')
}
