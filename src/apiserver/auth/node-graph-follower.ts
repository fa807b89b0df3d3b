/** Updates the node authorizer's graph with every change of the stored objects. */
import { PodCertificateRequests } from '#apis/certificates/v1beta1.ts'
import { type PersistentVolume, PersistentVolumes, type Pod, Pods } from '#apis/core/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import { ResourceSlices } from '#apis/resource/v1.ts'
import { VolumeAttachments } from '#apis/storage/v1.ts'
import type { NodeGraph } from '#auth/authorizers/node/graph.ts'
import { type ReferredKind, referenceTo } from '#auth/authorizers/node/references.ts'
import type { KubeObject } from '#meta/object.ts'

import type { Entry } from '../registry/entry.ts'
import { type Follower, follow, type Following, joinFollowings } from '../registry/follow.ts'
import type { Registry } from '../registry/registry.ts'

/** Resources that are not served are skipped. */
export function followNodeGraph(registry: Pick<Registry, 'storeOf'>, graph: NodeGraph): Following {
  const pods: Follower<Entry> = {
    set: (entry, previous) => graph.setPod(entry.object as Pod, previous?.object as Pod | undefined),
    remove: ({ namespace, name }) => graph.removePod(namespace, name),
  }
  const volumes: Follower<Entry> = {
    set: ({ object }) => graph.setVolume(object as PersistentVolume),
    remove: ({ name }) => graph.removeVolume(name),
  }
  const parts: [Kind, Follower<Entry>][] = [
    [Pods, pods],
    [PersistentVolumes, volumes],
    [VolumeAttachments, owned(graph, 'volumeattachment')],
    [ResourceSlices, owned(graph, 'resourceslice')],
    [PodCertificateRequests, owned(graph, 'podcertificaterequest')],
  ]
  const followings = parts.flatMap(([kind, follower]) => {
    const store = registry.storeOf(kind)
    return store === undefined ? [] : [follow(store.collection, follower)]
  })
  return joinFollowings(followings)
}

/** Kinds with `spec.nodeName`, which belong directly to that node. */
function owned(graph: NodeGraph, kind: ReferredKind): Follower<Entry> {
  return {
    set: ({ namespace, name, object }) => graph.setOwned(referenceTo(kind, namespace, name), nodeOf(object)),
    remove: ({ namespace, name }) => graph.removeOwned(referenceTo(kind, namespace, name)),
  }
}

function nodeOf(object: KubeObject): string {
  return (object as KubeObject & { spec?: { nodeName?: string } }).spec?.nodeName ?? ''
}
