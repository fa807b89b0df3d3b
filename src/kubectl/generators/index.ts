/** What `kubectl create` can make from flags alone, in the order of its help. */
import type { CommandRow } from '../command.ts'
import { planned } from '../planned.ts'

export const GENERATORS: readonly CommandRow[] = [
  planned('clusterrole', 'Create a cluster role'),
  planned('clusterrolebinding', 'Create a cluster role binding for a cluster role'),
  planned('configmap', 'Create a config map from files, directories or literal values'),
  planned('cronjob', 'Create a cron job'),
  planned('deployment', 'Create a deployment'),
  planned('ingress', 'Create an ingress'),
  planned('job', 'Create a job'),
  planned('namespace', 'Create a namespace'),
  planned('poddisruptionbudget', 'Create a pod disruption budget'),
  planned('priorityclass', 'Create a priority class'),
  planned('quota', 'Create a quota'),
  planned('role', 'Create a role with one rule'),
  planned('rolebinding', 'Create a role binding for a role or a cluster role'),
  planned('secret', 'Create a secret of a kind'),
  planned('service', 'Create a service of a kind'),
  planned('serviceaccount', 'Create a service account'),
  planned('token', 'Ask for a token of a service account'),
]
