/**
 * Attach/detach controller: attaches volumes to the nodes whose pods use them, and detaches them afterwards. Events of
 * pods, claims, nodes and attachments enqueue a volume; external drivers do the work. One worker, so that each decision
 * sees a consistent state.
 */
import {
  type Node,
  Nodes,
  type PersistentVolume,
  type PersistentVolumeClaim,
  PersistentVolumeClaims,
  PersistentVolumes,
  type Pod,
  Pods,
} from '#apis/core/v1.ts'
import { CSIDrivers, type CSINode, CSINodes, type VolumeAttachment, VolumeAttachments } from '#apis/storage/v1.ts'
import { semanticEqual } from '#meta/object.ts'
import { isOver, isScheduled } from '#model/pods.ts'
import type { Cache } from '#reconcile/cache.ts'
import { EVENTS, related, rule } from '#reconcile/controller.ts'
import { runPeriodically } from '#reconcile/periodic.ts'

import { perRun } from '../../controller.ts'
import { type Controller, defineController } from '../../controller.ts'
import { podsOn } from '../../nodes/node-pods.ts'
import { attachableIn, attachableOf, namesFor, volumeOfClaim } from '../attachable.ts'
import { Attacher } from './attacher.ts'
import { isManaged, isReady, migratedAt, reconcileVolume } from './reconcile.ts'

/** The resync period, for changes without an event. */
const ROUND_MS = 60_000
/** The minimum comparison period. */
const MIN_VERIFY_MS = 1000

const NODE = 'node:'
const VERIFY = 'verify'

const attacherOf = perRun((context) => new Attacher(context))

export const attachDetachController: Controller = defineController({
  name: 'persistentvolume-attach-detach-controller',
  aliases: ['attachdetach'],
  account: 'attachdetach-controller',
  component: 'attachdetach-controller',
  workers: 1,
  watches: [
    related(Pods, keysOfPod, isPodChanged),
    related(PersistentVolumeClaims, keysOfClaim),
    related(PersistentVolumes, keysOfVolume),
    related(VolumeAttachments, keysOfAttachment),
    related(Nodes, keysOfNode, isNodeChanged),
    related(CSINodes, keysOfDrivers, areDriversChanged),
  ],
  reads: [CSIDrivers],
  rules: [
    rule('', 'persistentvolumeclaims persistentvolumes pods', 'list watch'),
    rule('', 'nodes', 'get list watch'),
    rule('', 'nodes/status', 'patch update'),
    rule('storage.k8s.io', 'volumeattachments', 'get list watch create delete'),
    rule('storage.k8s.io', 'csidrivers csinodes', 'get list watch'),
    EVENTS,
  ],

  async reconcile(key, context) {
    const attacher = attacherOf(context)
    if (key.startsWith(NODE)) attacher.actualState.recheck(key.slice(NODE.length))
    else if (key === VERIFY) for (const lost of await attacher.verify()) context.enqueue(lost)
    else return reconcileVolume(key, attacher, context)
    return attacher.updateNodeStatuses()
  },

  async run(context) {
    const { cache, settings, enqueue } = context
    const verifyMs = settings['attach-detach-reconcile-sync-period']
    const isVerifying = !settings['disable-attach-detach-reconcile-sync'] && verifyMs >= MIN_VERIFY_MS
    const wakeAll = (): void => {
      for (const name of attacherOf(context).actualState.names()) enqueue(name)
      for (const pod of cache.list(Pods)) for (const name of keysOfPod(pod, cache)) enqueue(name)
    }
    await Promise.all([
      runPeriodically(context, ROUND_MS, 'Failed to look at volumes', wakeAll),
      isVerifying && runPeriodically(context, verifyMs, 'Failed to verify attachments', () => enqueue(VERIFY)),
    ])
  },
})

function keysOfPod(pod: Pod, cache: Cache): string[] {
  return isScheduled(pod) ? namesFor(pod, cache) : []
}

function isPodChanged(pod: Pod, old: Pod): boolean {
  return pod.spec.nodeName !== old.spec.nodeName || isOver(pod) !== isOver(old)
}

function keysOfVolume(volume: PersistentVolume): string[] {
  const attachable = attachableOf(volume)
  return attachable === undefined ? [] : [attachable.name]
}

function keysOfClaim(claim: PersistentVolumeClaim, cache: Cache): string[] {
  const volume = volumeOfClaim(claim, cache)
  return volume === undefined ? [] : keysOfVolume(volume)
}

function keysOfAttachment(attachment: VolumeAttachment, cache: Cache): string[] {
  const attachable = attachableIn(attachment, cache)
  return attachable === undefined ? [] : [attachable.name]
}

/** Volumes that wait until the node's CSINode supports the driver. */
function keysOfDrivers({ metadata: { name = '' } }: CSINode, cache: Cache): string[] {
  return podsOn(name, cache).flatMap((pod) => namesFor(pod, cache))
}

function keysOfNode({ metadata: { name = '' }, status }: Node, cache: Cache): string[] {
  const { volumesAttached = [], volumesInUse = [] } = status
  const wanted = podsOn(name, cache).flatMap((pod) => namesFor(pod, cache))
  return [...new Set([...volumesAttached.map((one) => one.name), ...volumesInUse, ...wanted, NODE + name])]
}

function isNodeChanged(node: Node, old: Node): boolean {
  const comparedFields = (one: Node): unknown => {
    const { volumesAttached, volumesInUse } = one.status
    return [volumesAttached, volumesInUse, one.spec.taints, isReady(one), isManaged(one)]
  }
  return !semanticEqual(comparedFields(node), comparedFields(old))
}

function areDriversChanged(node: CSINode, old: CSINode): boolean {
  return !semanticEqual(migratedAt(node), migratedAt(old))
}
