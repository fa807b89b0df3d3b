/** The subcommands of `kubectl create`, in the order of its help. */
import { type CommandRow, row } from '../command.ts'

export const GENERATORS: readonly CommandRow[] = [
  row('clusterrole', 'Create a cluster role', async () => (await import('./roles.ts')).clusterrole),
  row(
    'clusterrolebinding',
    'Create a cluster role binding for a cluster role',
    async () => (await import('./bindings.ts')).clusterrolebinding,
  ),
  row(
    'configmap',
    'Create a config map from files, directories or literal values',
    async () => (await import('./configmap.ts')).configmap,
    { aliases: ['cm'] },
  ),
  row('cronjob', 'Create a cron job', async () => (await import('./cronjob.ts')).cronjob, { aliases: ['cj'] }),
  row('deployment', 'Create a deployment', async () => (await import('./deployment.ts')).deployment, {
    aliases: ['deploy'],
  }),
  row('ingress', 'Create an ingress', async () => (await import('./ingress.ts')).ingress, { aliases: ['ing'] }),
  row('job', 'Create a job', async () => (await import('./job.ts')).job),
  row('namespace', 'Create a namespace', async () => (await import('./namespace.ts')).namespace, { aliases: ['ns'] }),
  row(
    'poddisruptionbudget',
    'Create a pod disruption budget',
    async () => (await import('./poddisruptionbudget.ts')).poddisruptionbudget,
    { aliases: ['pdb'] },
  ),
  row('priorityclass', 'Create a priority class', async () => (await import('./priorityclass.ts')).priorityclass, {
    aliases: ['pc'],
  }),
  row('quota', 'Create a resource quota', async () => (await import('./quota.ts')).quota, {
    aliases: ['resourcequota'],
  }),
  row('role', 'Create a role with one rule', async () => (await import('./roles.ts')).role),
  row(
    'rolebinding',
    'Create a role binding for a role or a cluster role',
    async () => (await import('./bindings.ts')).rolebinding,
  ),
  row('secret', 'Create a secret of a certain type', async () => (await import('./secret.ts')).secret),
  row('service', 'Create a service of a certain type', async () => (await import('./service.ts')).service, {
    aliases: ['svc'],
  }),
  row('serviceaccount', 'Create a service account', async () => (await import('./serviceaccount.ts')).serviceaccount, {
    aliases: ['sa'],
  }),
  row('token', 'Request a token for a service account', async () => (await import('./token.ts')).token),
]
