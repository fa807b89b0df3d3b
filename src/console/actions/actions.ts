/** The table of actions: for which kinds, with which rights, and what each sends. */
import type { CronJob } from '#apis/batch/v1.ts'
import type { KubeObject } from '#meta/object.ts'

import { groupOf } from '../objects/ref.ts'
import type { Action } from './action.ts'
import { instantiateJob, mergeSpec, restart } from './plans.ts'

const WORKLOADS = ['Deployment.apps', 'StatefulSet.apps', 'DaemonSet.apps']
const JOBS = { group: 'batch', version: 'v1', plural: 'jobs' }
const PODS = { group: '', version: 'v1', plural: 'pods' }
const PATCH = [{ verb: 'patch' }]

interface Switches {
  readonly paused?: boolean
  readonly suspend?: boolean
  readonly unschedulable?: boolean
}

function specOf(object: KubeObject): Switches {
  return (object as { spec?: Switches }).spec ?? {}
}

/** The API server adds no containers to static pods, which a file on the node defines. */
function isRunning(object: KubeObject): boolean {
  const { phase } = (object as { status?: { phase?: string } }).status ?? {}
  return phase === 'Running' && object.metadata.annotations?.['kubernetes.io/config.mirror'] === undefined
}

export const ACTIONS: readonly Action[] = [
  {
    name: 'scale',
    title: 'Scale',
    kinds: ['Deployment.apps', 'StatefulSet.apps', 'ReplicaSet.apps', 'ReplicationController'],
    rights: [{ verb: 'patch', subresource: 'scale' }],
    dialog: 'scale',
    done: 'The number of replicas is set',
  },
  {
    name: 'restart',
    title: 'Restart',
    kinds: WORKLOADS,
    rights: PATCH,
    // A paused rollout does not restart: the controller ignores the template.
    fits: (object) => specOf(object).paused !== true,
    dialog: 'confirm',
    warning: 'New pods replace all pods, step by step as the update strategy says.',
    plan: restart,
    done: 'The restart has begun',
  },
  {
    name: 'undo',
    title: 'Roll back',
    kinds: WORKLOADS,
    rights: PATCH,
    fits: (object) => specOf(object).paused !== true,
    dialog: 'undo',
    done: 'The rollback has begun',
  },
  {
    name: 'pause',
    title: 'Pause rollout',
    kinds: ['Deployment.apps'],
    rights: PATCH,
    fits: (object) => specOf(object).paused !== true,
    plan: (target) => mergeSpec(target, { paused: true }),
    done: 'The rollout is paused',
  },
  {
    name: 'resume-rollout',
    title: 'Resume rollout',
    kinds: ['Deployment.apps'],
    rights: PATCH,
    fits: (object) => specOf(object).paused === true,
    plan: (target) => mergeSpec(target, { paused: false }),
    done: 'The rollout goes on',
  },
  {
    name: 'run-now',
    title: 'Run now',
    kinds: ['CronJob.batch'],
    rights: [{ verb: 'create', kind: JOBS }],
    plan: ({ object }, surroundings) => instantiateJob(object as CronJob, surroundings),
    done: 'A job is created',
  },
  {
    name: 'suspend',
    title: 'Suspend',
    kinds: ['CronJob.batch', 'Job.batch'],
    rights: PATCH,
    fits: (object) => specOf(object).suspend !== true,
    dialog: 'confirm',
    warning: 'A suspended CronJob starts no jobs. A suspended Job ends its running pods.',
    plan: (target) => mergeSpec(target, { suspend: true }),
    done: 'It is suspended',
  },
  {
    name: 'resume',
    title: 'Resume',
    kinds: ['CronJob.batch', 'Job.batch'],
    rights: PATCH,
    fits: (object) => specOf(object).suspend === true,
    plan: (target) => mergeSpec(target, { suspend: false }),
    done: 'It goes on',
  },
  {
    name: 'cordon',
    title: 'Cordon',
    kinds: ['Node'],
    rights: PATCH,
    fits: (object) => specOf(object).unschedulable !== true,
    plan: (target) => mergeSpec(target, { unschedulable: true }),
    done: 'The node gets no new pods',
  },
  {
    name: 'uncordon',
    title: 'Uncordon',
    kinds: ['Node'],
    rights: PATCH,
    fits: (object) => specOf(object).unschedulable === true,
    plan: (target) => mergeSpec(target, { unschedulable: null }),
    done: 'The node gets pods again',
  },
  {
    name: 'drain',
    title: 'Drain',
    kinds: ['Node'],
    rights: [{ verb: 'patch' }, { verb: 'create', kind: PODS, subresource: 'eviction' }],
    isDangerous: true,
    dialog: 'drain',
    done: 'The node is drained',
  },
  {
    name: 'debug-pod',
    title: 'Debug',
    kinds: ['Pod'],
    rights: [{ verb: 'patch', subresource: 'ephemeralcontainers' }],
    fits: isRunning,
    dialog: 'debug-pod',
    done: 'The debug container is added',
  },
  {
    name: 'debug-node',
    title: 'Debug',
    kinds: ['Node'],
    rights: [{ verb: 'create', kind: PODS }],
    dialog: 'debug-node',
    done: 'The debug pod is created',
  },
  { name: 'labels', title: 'Labels', rights: PATCH, dialog: 'labels', done: 'The labels are set' },
  {
    name: 'delete',
    title: 'Delete',
    rights: [{ verb: 'delete' }],
    isDangerous: true,
    dialog: 'delete',
    done: 'The deletion has begun',
  },
]

/** The actions that make sense for an object; whether the user may do them is another question. */
export function actionsFor(object: KubeObject): readonly Action[] {
  const group = groupOf(object.apiVersion ?? '')
  const kind = `${object.kind ?? ''}${group === '' ? '' : `.${group}`}`
  const isGoing = object.metadata.deletionTimestamp !== undefined
  return ACTIONS.filter(({ kinds, fits, name }) => {
    if (isGoing && name !== 'labels' && name !== 'delete') return false
    return (kinds === undefined || kinds.includes(kind)) && (fits === undefined || fits(object))
  })
}
