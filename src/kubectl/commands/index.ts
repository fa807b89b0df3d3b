/** The commands of kubectl in the order of its help. A command is loaded on use, to keep the start fast. */
import { type CommandRow, row } from '../command.ts'

export const COMMANDS: readonly CommandRow[] = [
  ...under(
    'Basic Commands (Beginner):',
    row('create', 'Create a resource from a file or from stdin', async () => (await import('./create.ts')).create),
    row('expose', 'Expose a workload or a service as a new service', async () => (await import('./expose.ts')).expose),
    row('run', 'Run an image in a pod', async () => (await import('./run.ts')).run),
    row('set', 'Set specific fields of objects', async () => (await import('./set.ts')).set),
  ),
  ...under(
    'Basic Commands (Intermediate):',
    row('explain', 'Describe the fields of a resource', async () => (await import('./explain.ts')).explain),
    row('get', 'Display one or many resources', async () => (await import('./get.ts')).get, {
      suggestFor: ['list', 'ls'],
    }),
    row('edit', 'Edit a resource on the server', async () => (await import('./edit.ts')).edit),
    row(
      'delete',
      'Delete resources by file, name or selector',
      async () => (await import('./delete.ts')).deleteCommand,
      { suggestFor: ['rm', 'remove'] },
    ),
  ),
  ...under(
    'Deploy Commands:',
    row('rollout', 'Manage the rollout of a resource', async () => (await import('./rollout.ts')).rollout),
    row('scale', 'Set the number of replicas of a workload', async () => (await import('./scale.ts')).scale),
    row('autoscale', 'Scale a workload automatically', async () => (await import('./autoscale.ts')).autoscale),
  ),
  ...under(
    'Cluster Management Commands:',
    row(
      'certificate',
      'Approve or deny certificate signing requests',
      async () => (await import('./certificate.ts')).certificate,
    ),
    row(
      'cluster-info',
      'Show the addresses of the cluster and its services',
      async () => (await import('./cluster-info.ts')).clusterInfo,
    ),
    row('top', 'Show CPU and memory usage', async () => (await import('./top.ts')).top, { suggestFor: ['stats'] }),
    row('cordon', 'Mark a node as unschedulable', async () => (await import('./cordon.ts')).cordon),
    row('uncordon', 'Mark a node as schedulable', async () => (await import('./cordon.ts')).uncordon),
    row('drain', 'Evict the pods of a node before maintenance', async () => (await import('./drain.ts')).drain),
    row('taint', 'Update the taints of nodes', async () => (await import('./taint.ts')).taint),
  ),
  ...under(
    'Troubleshooting and Debugging Commands:',
    row(
      'describe',
      'Show details of a resource or a group of resources',
      async () => (await import('./describe.ts')).describe,
      { suggestFor: ['inspect'] },
    ),
    row('logs', 'Print the logs of a container', async () => (await import('./logs.ts')).logs),
    row('attach', 'Attach to a running container', async () => (await import('./attach.ts')).attach),
    row('exec', 'Run a command in a container', async () => (await import('./exec.ts')).exec),
    row('port-forward', 'Forward local ports to a pod', async () => (await import('./port-forward.ts')).portForward),
    row('proxy', 'Run a proxy to the API server', async () => (await import('./proxy.ts')).proxy),
    row('cp', 'Copy files to and from containers', async () => (await import('./cp.ts')).cp),
    row('auth', 'Inspect authorization', async () => (await import('./auth.ts')).auth),
    row('debug', 'Start debugging sessions for workloads and nodes', async () => (await import('./debug.ts')).debug),
    row('events', 'List events', async () => (await import('./events.ts')).events),
  ),
  ...under(
    'Advanced Commands:',
    row('diff', 'Compare live objects with the result of apply', async () => (await import('./diff.ts')).diff),
    row('apply', 'Apply a configuration to a resource', async () => (await import('./apply.ts')).apply),
    row('patch', 'Update fields of a resource', async () => (await import('./patch.ts')).patch),
    row('replace', 'Replace a resource', async () => (await import('./replace.ts')).replace),
    row('wait', 'Wait for a condition on one or many resources', async () => (await import('./wait.ts')).wait),
    row('kustomize', 'Build a kustomization from a directory', async () => (await import('./kustomize.ts')).kustomize),
  ),
  ...under(
    'Settings Commands:',
    row('label', 'Update the labels of a resource', async () => (await import('./label.ts')).label),
    row('annotate', 'Update the annotations of a resource', async () => (await import('./annotate.ts')).annotate),
    row(
      'completion',
      'Print a completion script for bash, zsh, fish or powershell',
      async () => (await import('./completion.ts')).completion,
    ),
  ),
  // Hidden, because help and completion show what upstream's show: `hyperkube at --help` names them.
  row('history', 'List the changes of an object', async () => (await import('./history.ts')).history, { hidden: true }),
  row('undo', 'Bring objects back to an earlier state', async () => (await import('./undo.ts')).undo, { hidden: true }),
  row('why', 'say why an object is in its state', async () => (await import('./why.ts')).why, { hidden: true }),
  row('alpha', 'Commands for alpha features', async () => (await import('./alpha.ts')).alpha, { hidden: true }),
  row(
    'api-resources',
    'List the resources that the server supports',
    async () => (await import('./api-resources.ts')).apiResources,
  ),
  row(
    'api-versions',
    'List the API versions that the server supports, as "group/version"',
    async () => (await import('./api-versions.ts')).apiVersions,
  ),
  row('config', 'Show and change kubeconfig files', async () => (await import('./config.ts')).config),
  row('kuberc', 'Show and change the kuberc preferences file', async () => (await import('./kuberc.ts')).kuberc),
  row('plugin', 'Work with plugins', async () => (await import('./plugin.ts')).plugin),
  row('version', 'Print the client and server versions', async () => (await import('./version.ts')).version),
  row('options', 'Print the flags that all commands share', async () => (await import('./options.ts')).options, {
    hidden: true,
  }),
]

/** Rows under a heading of `kubectl --help`. */
function under(group: string, ...rows: readonly CommandRow[]): CommandRow[] {
  return rows.map((each) => ({ ...each, group }))
}
