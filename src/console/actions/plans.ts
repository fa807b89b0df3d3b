/** The requests of actions, as kubectl sends them. */
import type { ControllerRevision, Deployment, ReplicaSet } from '#apis/apps/v1.ts'
import type { CronJob } from '#apis/batch/v1.ts'

import { listPath, objectPath } from '../api/kinds.ts'
import type { ActionRequest, Surroundings, Target } from './action.ts'

const MERGE = 'application/merge-patch+json'
const STRATEGIC = 'application/strategic-merge-patch+json'
const JSON_PATCH = 'application/json-patch+json'
const MANAGER = 'fieldManager=hyperkube-console'
const HASH_LABEL = 'pod-template-hash'

function pathOf({ kind, object }: Target, subresource = ''): string {
  const { name = '', namespace = '' } = object.metadata
  return `${objectPath(kind, { namespace, name }, subresource)}?${MANAGER}`
}

export function mergeSpec(target: Target, spec: object): ActionRequest {
  return { method: 'PATCH', path: pathOf(target), type: MERGE, body: { spec } }
}

export function scale(target: Target, replicas: number): ActionRequest {
  return { method: 'PATCH', path: pathOf(target, 'scale'), type: MERGE, body: { spec: { replicas } } }
}

export function restart(target: Target, { nowMs }: Surroundings): ActionRequest {
  const restartedAt = new Date(nowMs).toISOString().replace(/\.\d+Z$/, 'Z')
  const annotations = { 'kubectl.kubernetes.io/restartedAt': restartedAt }
  return {
    method: 'PATCH',
    path: pathOf(target),
    type: STRATEGIC,
    body: { spec: { template: { metadata: { annotations } } } },
  }
}

const MAX_NAME = 63

export function instantiateJob(cronJob: CronJob, { suffix }: Surroundings): ActionRequest {
  const { name = '', namespace = '', uid = '' } = cronJob.metadata
  const { metadata, spec } = cronJob.spec.jobTemplate
  const end = `-manual-${suffix}`
  const body = {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: {
      name: name.slice(0, MAX_NAME - end.length) + end,
      namespace,
      labels: metadata.labels ?? {},
      annotations: { ...metadata.annotations, 'cronjob.kubernetes.io/instantiate': 'manual' },
      ownerReferences: [{ apiVersion: 'batch/v1', kind: 'CronJob', name, uid, controller: true }],
    },
    spec,
  }
  const jobs = { group: 'batch', version: 'v1', plural: 'jobs' }
  return { method: 'POST', path: `${listPath(jobs, namespace)}?${MANAGER}`, body }
}

/** `undefined` values are labels to remove. */
export function setLabels(target: Target, labels: Readonly<Record<string, string>>): ActionRequest {
  const before = target.object.metadata.labels ?? {}
  const removed = Object.keys(before).filter((key) => !Object.hasOwn(labels, key))
  const changed = Object.entries(labels).filter(([key, value]) => before[key] !== value)
  const body = {
    metadata: { labels: { ...Object.fromEntries(changed), ...Object.fromEntries(removed.map((key) => [key, null])) } },
  }
  return { method: 'PATCH', path: pathOf(target), type: MERGE, body }
}

/** Lines of `key=value`. Throws with the line that is none. */
export function parseLabels(text: string): Readonly<Record<string, string>> {
  const lines = text.split('\n').map((line) => line.trim())
  const entries = lines
    .filter((line) => line !== '')
    .map((line) => {
      const at = line.indexOf('=')
      if (at < 1) throw new Error(`"${line}" is not key=value`)
      return [line.slice(0, at).trim(), line.slice(at + 1).trim()] as const
    })
  return Object.fromEntries(entries)
}

export type Propagation = 'Background' | 'Foreground' | 'Orphan'

/** The uid makes sure that no newer object of the same name goes. */
export function remove(target: Target, propagationPolicy: Propagation): ActionRequest {
  const { uid = '' } = target.object.metadata
  const body = { apiVersion: 'v1', kind: 'DeleteOptions', propagationPolicy, preconditions: { uid } }
  return { method: 'DELETE', path: pathOf(target).split('?')[0] ?? '', body }
}

export interface Revision {
  readonly number: number
  readonly createdAt: string
  /** The images, or the name of the revision. */
  readonly summary: string
  readonly isCurrent: boolean
  readonly request: ActionRequest
}

const REVISION = 'deployment.kubernetes.io/revision'
/** Annotations that belong to a ReplicaSet, not to the Deployment that it comes from. */
const OF_REPLICA_SET: ReadonlySet<string> = new Set([
  'kubectl.kubernetes.io/last-applied-configuration',
  REVISION,
  'deployment.kubernetes.io/revision-history',
  'deployment.kubernetes.io/desired-replicas',
  'deployment.kubernetes.io/max-replicas',
])

/** The revisions of a Deployment, the newest first. */
export function deploymentRevisions(target: Target, replicaSets: readonly ReplicaSet[]): readonly Revision[] {
  const deployment = target.object as Deployment
  const current = deployment.metadata.annotations?.[REVISION]
  const own = replicaSets.filter(({ metadata }) =>
    metadata.ownerReferences?.some(({ uid }) => uid === deployment.metadata.uid),
  )
  return own
    .map((replicaSet) => {
      const number = replicaSet.metadata.annotations?.[REVISION] ?? '0'
      const images = (replicaSet.spec.template?.spec?.containers ?? []).map(({ image = '' }) => image)
      return {
        number: Number(number),
        createdAt: replicaSet.metadata.creationTimestamp ?? '',
        summary: images.join(', '),
        isCurrent: number === current,
        request: undoDeployment(target, deployment, replicaSet),
      }
    })
    .sort((a, b) => b.number - a.number)
}

function undoDeployment(target: Target, deployment: Deployment, replicaSet: ReplicaSet): ActionRequest {
  const { template } = replicaSet.spec
  const labels = Object.entries(template?.metadata?.labels ?? {}).filter(([key]) => key !== HASH_LABEL)
  const restored = { ...template, metadata: { ...template?.metadata, labels: Object.fromEntries(labels) } }
  const kept = Object.entries(deployment.metadata.annotations ?? {}).filter(([key]) => OF_REPLICA_SET.has(key))
  const brought = Object.entries(replicaSet.metadata.annotations ?? {}).filter(([key]) => !OF_REPLICA_SET.has(key))
  const body = [
    { op: 'replace', path: '/spec/template', value: restored },
    { op: 'replace', path: '/metadata/annotations', value: Object.fromEntries([...kept, ...brought]) },
  ]
  return { method: 'PATCH', path: pathOf(target), type: JSON_PATCH, body }
}

/** The revisions of a StatefulSet or a DaemonSet, the newest first. Their data is a patch. */
export function controllerRevisions(target: Target, revisions: readonly ControllerRevision[]): readonly Revision[] {
  const { uid } = target.object.metadata
  const own = revisions.filter(({ metadata }) => metadata.ownerReferences?.some((owner) => owner.uid === uid))
  const newest = Math.max(0, ...own.map(({ revision }) => revision))
  return own
    .map(({ revision, metadata, data }) => ({
      number: revision,
      createdAt: metadata.creationTimestamp ?? '',
      summary: metadata.name ?? '',
      isCurrent: revision === newest,
      request: { method: 'PATCH' as const, path: pathOf(target), type: STRATEGIC, body: data ?? {} },
    }))
    .sort((a, b) => b.number - a.number)
}
