/**
 * Every command of kubectl, in the order of its help. A command is loaded when it is asked for, and nothing before that:
 * people start this program all day.
 */
import type { CommandRow } from '../command.ts'

const BEGINNER = 'Basic Commands (Beginner):'
const INTERMEDIATE = 'Basic Commands (Intermediate):'
const DEPLOY = 'Deploy Commands:'
const CLUSTER = 'Cluster Management Commands:'
const TROUBLE = 'Troubleshooting and Debugging Commands:'
const ADVANCED = 'Advanced Commands:'
const SETTINGS = 'Settings Commands:'

export const COMMANDS: readonly CommandRow[] = [
  {
    name: 'create',
    short: 'Create a resource from a file or from stdin',
    group: BEGINNER,
    load: async () => (await import('./create.ts')).create,
  },
  {
    name: 'expose',
    short: 'Take a workload or a service and expose it as a new service',
    group: BEGINNER,
    load: async () => (await import('./expose.ts')).expose,
  },
  {
    name: 'run',
    short: 'Run an image in a pod',
    group: BEGINNER,
    load: async () => (await import('./run.ts')).run,
  },
  {
    name: 'set',
    short: 'Set particular fields of objects',
    group: BEGINNER,
    load: async () => (await import('./set.ts')).set,
  },
  {
    name: 'explain',
    short: 'Describe the fields of a resource',
    group: INTERMEDIATE,
    load: async () => (await import('./explain.ts')).explain,
  },
  {
    name: 'get',
    short: 'Display one or many resources',
    group: INTERMEDIATE,
    suggestFor: ['list', 'ls'],
    load: async () => (await import('./get.ts')).get,
  },
  {
    name: 'edit',
    short: 'Edit a resource on the server',
    group: INTERMEDIATE,
    load: async () => (await import('./edit.ts')).edit,
  },
  {
    name: 'delete',
    short: 'Delete resources by file, name or selector',
    group: INTERMEDIATE,
    suggestFor: ['rm', 'remove'],
    load: async () => (await import('./delete.ts')).deleteCommand,
  },
  {
    name: 'rollout',
    short: 'Manage the rollout of a resource',
    group: DEPLOY,
    load: async () => (await import('./rollout.ts')).rollout,
  },
  {
    name: 'scale',
    short: 'Set the number of replicas of a workload',
    group: DEPLOY,
    load: async () => (await import('./scale.ts')).scale,
  },
  {
    name: 'autoscale',
    short: 'Let a workload grow and shrink by itself',
    group: DEPLOY,
    load: async () => (await import('./autoscale.ts')).autoscale,
  },
  {
    name: 'certificate',
    short: 'Approve and deny certificate requests',
    group: CLUSTER,
    load: async () => (await import('./certificate.ts')).certificate,
  },
  {
    name: 'cluster-info',
    short: 'Show where the cluster and its services are',
    group: CLUSTER,
    load: async () => (await import('./cluster-info.ts')).clusterInfo,
  },
  {
    name: 'top',
    short: 'Show how much processor and memory is used',
    group: CLUSTER,
    suggestFor: ['stats'],
    load: async () => (await import('./top.ts')).top,
  },
  {
    name: 'cordon',
    short: 'Take no more pods on a node',
    group: CLUSTER,
    load: async () => (await import('./cordon.ts')).cordon,
  },
  {
    name: 'uncordon',
    short: 'Take pods on a node again',
    group: CLUSTER,
    load: async () => (await import('./cordon.ts')).uncordon,
  },
  {
    name: 'drain',
    short: 'Empty a node before maintenance',
    group: CLUSTER,
    load: async () => (await import('./drain.ts')).drain,
  },
  {
    name: 'taint',
    short: 'Change the taints of nodes',
    group: CLUSTER,
    load: async () => (await import('./taint.ts')).taint,
  },
  {
    name: 'describe',
    short: 'Show details of a resource or of a group of them',
    group: TROUBLE,
    suggestFor: ['inspect'],
    load: async () => (await import('./describe.ts')).describe,
  },
  {
    name: 'logs',
    short: 'Print the logs of a container',
    group: TROUBLE,
    load: async () => (await import('./logs.ts')).logs,
  },
  {
    name: 'attach',
    short: 'Attach to a running container',
    group: TROUBLE,
    load: async () => (await import('./attach.ts')).attach,
  },
  {
    name: 'exec',
    short: 'Run a command in a container',
    group: TROUBLE,
    load: async () => (await import('./exec.ts')).exec,
  },
  {
    name: 'port-forward',
    short: 'Forward local ports to a pod',
    group: TROUBLE,
    load: async () => (await import('./port-forward.ts')).portForward,
  },
  {
    name: 'proxy',
    short: 'Run a proxy to the API server',
    group: TROUBLE,
    load: async () => (await import('./proxy.ts')).proxy,
  },
  {
    name: 'cp',
    short: 'Copy files to and from containers',
    group: TROUBLE,
    load: async () => (await import('./cp.ts')).cp,
  },
  {
    name: 'auth',
    short: 'Look into authorization',
    group: TROUBLE,
    load: async () => (await import('./auth.ts')).auth,
  },
  {
    name: 'debug',
    short: 'Start debugging sessions for workloads and nodes',
    group: TROUBLE,
    load: async () => (await import('./debug.ts')).debug,
  },
  {
    name: 'events',
    short: 'List events',
    group: TROUBLE,
    load: async () => (await import('./events.ts')).events,
  },
  {
    name: 'diff',
    short: 'Compare the live version with what would be applied',
    group: ADVANCED,
    load: async () => (await import('./diff.ts')).diff,
  },
  {
    name: 'apply',
    short: 'Apply a configuration to a resource',
    group: ADVANCED,
    load: async () => (await import('./apply.ts')).apply,
  },
  {
    name: 'patch',
    short: 'Change fields of a resource',
    group: ADVANCED,
    load: async () => (await import('./patch.ts')).patch,
  },
  {
    name: 'replace',
    short: 'Replace a resource',
    group: ADVANCED,
    load: async () => (await import('./replace.ts')).replace,
  },
  {
    name: 'wait',
    short: 'Wait for a condition on one or many resources',
    group: ADVANCED,
    load: async () => (await import('./wait.ts')).wait,
  },
  {
    name: 'kustomize',
    short: 'Build a kustomization from a directory',
    group: ADVANCED,
    load: async () => (await import('./kustomize.ts')).kustomize,
  },
  {
    name: 'label',
    short: 'Change the labels of a resource',
    group: SETTINGS,
    load: async () => (await import('./label.ts')).label,
  },
  {
    name: 'annotate',
    short: 'Change the annotations of a resource',
    group: SETTINGS,
    load: async () => (await import('./annotate.ts')).annotate,
  },
  {
    name: 'completion',
    short: 'Print code for completion in a shell (bash, zsh, fish or powershell)',
    group: SETTINGS,
    load: async () => (await import('./completion.ts')).completion,
  },
  {
    name: 'alpha',
    short: 'Commands for features in alpha',
    hidden: true,
    load: async () => (await import('./alpha.ts')).alpha,
  },
  {
    name: 'api-resources',
    short: 'Print the resources that the server serves',
    load: async () => (await import('./api-resources.ts')).apiResources,
  },
  {
    name: 'api-versions',
    short: 'Print the API versions that the server serves, as "group/version"',
    load: async () => (await import('./api-versions.ts')).apiVersions,
  },
  {
    name: 'config',
    short: 'Change kubeconfig files',
    load: async () => (await import('./config.ts')).config,
  },
  {
    name: 'kuberc',
    short: 'Show and change the file with preferences',
    load: async () => (await import('./kuberc.ts')).kuberc,
  },
  {
    name: 'plugin',
    short: 'Work with plugins',
    load: async () => (await import('./plugin.ts')).plugin,
  },
  {
    name: 'version',
    short: 'Print the versions of client and server',
    load: async () => (await import('./version.ts')).version,
  },
  {
    name: 'options',
    short: 'Print the flags that every command has',
    hidden: true,
    load: async () => (await import('./options.ts')).options,
  },
]
