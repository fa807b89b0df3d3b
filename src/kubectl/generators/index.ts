/** What `kubectl create` can make from flags alone, in the order of its help. */
import type { CommandRow } from '../command.ts'
import { planned } from '../planned.ts'

export const GENERATORS: readonly CommandRow[] = [
  planned('clusterrole', 'Create a cluster role'),
  {
    name: 'clusterrolebinding',
    short: 'Create a cluster role binding for a cluster role',
    load: async () => (await import('./bindings.ts')).clusterrolebinding,
  },
  {
    name: 'configmap',
    aliases: ['cm'],
    short: 'Create a config map from files, directories or literal values',
    load: async () => (await import('./configmap.ts')).configmap,
  },
  {
    name: 'cronjob',
    aliases: ['cj'],
    short: 'Create a cron job',
    load: async () => (await import('./cronjob.ts')).cronjob,
  },
  {
    name: 'deployment',
    aliases: ['deploy'],
    short: 'Create a deployment',
    load: async () => (await import('./deployment.ts')).deployment,
  },
  planned('ingress', 'Create an ingress'),
  {
    name: 'job',
    short: 'Create a job',
    load: async () => (await import('./job.ts')).job,
  },
  {
    name: 'namespace',
    aliases: ['ns'],
    short: 'Create a namespace',
    load: async () => (await import('./namespace.ts')).namespace,
  },
  planned('poddisruptionbudget', 'Create a pod disruption budget'),
  {
    name: 'priorityclass',
    aliases: ['pc'],
    short: 'Create a priority class',
    load: async () => (await import('./priorityclass.ts')).priorityclass,
  },
  planned('quota', 'Create a quota'),
  planned('role', 'Create a role with one rule'),
  {
    name: 'rolebinding',
    short: 'Create a role binding for a role or a cluster role',
    load: async () => (await import('./bindings.ts')).rolebinding,
  },
  {
    name: 'secret',
    short: 'Create a secret of a kind',
    load: async () => (await import('./secret.ts')).secret,
  },
  planned('service', 'Create a service of a kind'),
  {
    name: 'serviceaccount',
    aliases: ['sa'],
    short: 'Create a service account',
    load: async () => (await import('./serviceaccount.ts')).serviceaccount,
  },
  planned('token', 'Ask for a token of a service account'),
]
