/** What `kubectl create` can make from flags alone, in the order of its help. */
import type { CommandRow } from '../command.ts'

export const GENERATORS: readonly CommandRow[] = [
  {
    name: 'clusterrole',
    short: 'Create a cluster role',
    load: async () => (await import('./roles.ts')).clusterrole,
  },
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
  {
    name: 'ingress',
    aliases: ['ing'],
    short: 'Create an ingress',
    load: async () => (await import('./ingress.ts')).ingress,
  },
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
  {
    name: 'poddisruptionbudget',
    aliases: ['pdb'],
    short: 'Create a pod disruption budget',
    load: async () => (await import('./poddisruptionbudget.ts')).poddisruptionbudget,
  },
  {
    name: 'priorityclass',
    aliases: ['pc'],
    short: 'Create a priority class',
    load: async () => (await import('./priorityclass.ts')).priorityclass,
  },
  {
    name: 'quota',
    aliases: ['resourcequota'],
    short: 'Create a quota',
    load: async () => (await import('./quota.ts')).quota,
  },
  {
    name: 'role',
    short: 'Create a role with one rule',
    load: async () => (await import('./roles.ts')).role,
  },
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
  {
    name: 'service',
    aliases: ['svc'],
    short: 'Create a service of a type',
    load: async () => (await import('./service.ts')).service,
  },
  {
    name: 'serviceaccount',
    aliases: ['sa'],
    short: 'Create a service account',
    load: async () => (await import('./serviceaccount.ts')).serviceaccount,
  },
  {
    name: 'token',
    short: 'Ask for a token of a service account',
    load: async () => (await import('./token.ts')).token,
  },
]
