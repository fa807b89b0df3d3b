/**
 * The table of programs, and the selection by the name of the executable (a symlink named kubectl is kubectl) or by the
 * first argument. Static imports are few, because every start loads them.
 */
import { findCommand } from '#lib/commands.ts'
import { flag } from '#lib/flags/flags.ts'
import { bool } from '#lib/flags/kinds.ts'
import { type Command, defineProgram, type Program, type ProgramContext } from '#lib/program.ts'
import { GIT_VERSION, hyperkubeVersion, KUBERNETES_VERSION, kubernetesVersion } from '#model/version.ts'

import { programName } from './process.ts'

/** Upstream's programs with upstream hyperkube's names and aliases, in its order. */
export const KUBE_PROGRAMS: readonly Command[] = [
  {
    name: 'kube-apiserver',
    aliases: ['apiserver'],
    short: 'Serves the Kubernetes API and stores its objects',
    load: async () => (await import('./apiserver.ts')).apiserver,
  },
  {
    name: 'kube-controller-manager',
    aliases: ['controller-manager'],
    short: 'Runs the control loops that move objects to their desired state',
    load: async () => (await import('./controller-manager/controller-manager.ts')).controllerManager,
  },
  {
    name: 'kube-proxy',
    aliases: ['proxy'],
    short: 'Routes traffic for Services on this node',
    load: async () => (await import('./proxy/proxy.ts')).proxy,
  },
  {
    name: 'kube-scheduler',
    aliases: ['scheduler'],
    short: 'Chooses a node for every new Pod',
    load: async () => (await import('./scheduler/scheduler.ts')).scheduler,
  },
  {
    name: 'kubectl',
    short: 'Controls a Kubernetes cluster',
    load: async () => (await import('./kubectl.ts')).kubectl,
  },
  {
    name: 'kubelet',
    short: 'Runs the Pods of this node',
    load: async () => (await import('./kubelet/kubelet.ts')).kubelet,
  },
  {
    name: 'cloud-controller-manager',
    short: 'Runs the control loops that depend on a cloud provider',
    load: async () => (await import('./cloud-controller-manager/cloud-controller-manager.ts')).cloudControllerManager,
  },
]

/** Commands that hyperkube adds. */
export const OWN_PROGRAMS: readonly Command[] = [
  {
    name: 'up',
    short: 'Starts a cluster on this machine, or resumes it',
    load: async () => (await import('./cluster/up.ts')).up,
  },
  {
    name: 'up-node',
    short: 'Runs an additional node for "up"',
    hidden: true,
    load: async () => (await import('./cluster/up-node.ts')).upNode,
  },
  {
    name: 'down',
    short: 'Stops a cluster',
    load: async () => (await import('./cluster/down.ts')).down,
  },
  {
    name: 'status',
    short: 'Shows the components of a cluster and their addresses',
    load: async () => (await import('./cluster/status.ts')).status,
  },
  {
    name: 'console',
    short: 'Serves the web console for a kubeconfig',
    load: async () => (await import('./console/console.ts')).consoleProgram,
  },
  {
    name: 'reset',
    short: 'Deletes a cluster and its data',
    load: async () => (await import('./cluster/reset.ts')).reset,
  },
  {
    name: 'at',
    short: 'Opens a shell for a cluster as it was at an earlier moment',
    load: async () => (await import('./at.ts')).at,
  },
  {
    name: 'assets',
    short: 'Prints a directory with kube-apiserver, etcd and kubectl for KUBEBUILDER_ASSETS',
    load: async () => (await import('./assets.ts')).assets,
  },
  {
    name: 'envtest-kube-apiserver',
    short: 'Runs as kube-apiserver for "assets"',
    hidden: true,
    load: async () => (await import('./envtest.ts')).envtestServer,
  },
  {
    name: 'envtest-etcd',
    short: 'Runs as etcd for "assets"',
    hidden: true,
    load: async () => (await import('./envtest.ts')).envtestEtcd,
  },
  {
    name: 'snapshot',
    short: 'Saves, restores and lists whole-cluster states',
    load: async () => (await import('./snapshot.ts')).snapshot,
  },
  {
    name: 'image',
    short: 'Loads, lists, removes and pulls images of real pods',
    load: async () => (await import('./image.ts')).image,
  },
  {
    name: 'flanneld',
    short: 'Connects the pods of all nodes to one network',
    load: async () => (await import('./flanneld/flanneld.ts')).flanneld,
  },
  {
    name: 'kube-network-policies',
    short: 'Enforces network policies on this node',
    load: async () => (await import('./network-policies.ts')).networkPolicies,
  },
  {
    name: 'dns',
    short: 'Serves DNS for a cluster',
    load: async () => (await import('./dns.ts')).dns,
  },
  {
    name: 'ingress-controller',
    short: 'Forwards HTTP requests to the pods behind Ingresses',
    load: async () => (await import('./ingress-controller.ts')).ingressController,
  },
  {
    name: 'metrics-server',
    short: 'Serves resource usage of nodes and pods through the API server',
    load: async () => (await import('./metrics-server.ts')).metricsServer,
  },
  {
    name: 'cluster-proportional-autoscaler',
    short: 'Keeps the replicas of a Deployment in proportion to the cluster',
    load: async () => (await import('./proportional-autoscaler.ts')).proportionalAutoscaler,
  },
  {
    name: 'build',
    aliases: ['rke'],
    short: 'Plans and builds a cluster on machines over SSH from a cluster.yml',
    load: async () => (await import('./build/build.ts')).build,
  },
  {
    name: 'machine',
    short: 'Runs the remote commands of "build"',
    hidden: true,
    load: async () => (await import('./machine/machine.ts')).machine,
  },
  {
    name: 'node',
    short: 'Supervises kubelet, kube-proxy and flanneld on this machine',
    load: async () => (await import('./node/node.ts')).node,
  },
  {
    name: 'server',
    short: 'Manages many clusters from one place',
    load: async () => (await import('./management/server.ts')).server,
  },
  {
    name: 'cluster-agent',
    short: 'Connects this cluster to a management server',
    load: async () => (await import('./management/cluster-agent.ts')).clusterAgent,
  },
  {
    name: 'kube-api-auth',
    short: "Authenticates a management server's tokens for kube-apiserver",
    load: async () => (await import('./management/kube-api-auth.ts')).kubeApiAuth,
  },
  {
    name: 'codec',
    short: 'Converts objects between JSON, YAML and protobuf',
    load: async () => (await import('./codec.ts')).codec,
  },
]

const PROGRAMS: readonly Command[] = [...KUBE_PROGRAMS, ...OWN_PROGRAMS]

/**
 * Runs the program for `invokedAs` (a path, as the shell passed it) and the arguments; resolves to the exit code. It
 * sets the `path` of the context.
 */
export async function main(
  invokedAs: string,
  context: Omit<ProgramContext, 'path'>,
  signal: AbortSignal,
): Promise<number> {
  const command = findCommand(PROGRAMS, programName(invokedAs))
  const program = command ? await command.load() : hyperkube()
  return program.run({ ...context, path: [program.name] }, signal)
}

function hyperkube(): Program {
  const version = hyperkubeVersion()
  return defineProgram({
    name: 'hyperkube',
    long: 'hyperkube is the whole of Kubernetes as one program.',
    use: '[command]',
    version: {
      text: `hyperkube v${version}\nKubernetes ${KUBERNETES_VERSION} (reported as ${GIT_VERSION})`,
      raw: kubernetesVersion().raw,
    },
    flags: {
      hyperkube: {
        'make-symlinks': flag(
          bool,
          false,
          'create a symlink for each Kubernetes program and alias in the current directory',
        ),
      },
    },
    commands: [
      { title: 'Kubernetes programs', commands: KUBE_PROGRAMS },
      { title: 'Cluster commands', commands: OWN_PROGRAMS },
    ],
    async run({ flags, help, ...context }) {
      if (flags['make-symlinks']) return linkPrograms(context)
      context.stdout.write(await help())
      return 1
    },
  })
}

async function linkPrograms({ cwd, stderr }: Pick<ProgramContext, 'cwd' | 'stderr'>): Promise<number> {
  const { makeSymlinks } = await import('./make-symlinks.ts')
  const failures = await makeSymlinks(KUBE_PROGRAMS, cwd, new URL('../../bin/hyperkube', import.meta.url))
  for (const { path, reason } of failures) stderr.write(`Error: cannot make symlink "${path}": ${reason}\n`)
  return failures.length === 0 ? 0 : 1
}
