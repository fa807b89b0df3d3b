/** Finds the events of an object and of the objects that its controller makes for it. */
import type { Event } from '#apis/core/v1.ts'
import type { KubeObject } from '#meta/object.ts'

import { kubernetesKind } from '../objects/kubernetes-kind.ts'

/** Letters that controllers use for generated names. */
const HASH = '[bcdfghjklmnpqrstvwxz2456789]'

/** The end of the names of objects that belong to another, behind the name of that one. */
const CHILD_NAMES: Readonly<Record<string, RegExp>> = {
  Deployment: new RegExp(`^-${HASH}{1,10}(-${HASH}{5})?$`),
  ReplicaSet: new RegExp(`^-${HASH}{5}$`),
  ReplicationController: new RegExp(`^-${HASH}{5}$`),
  DaemonSet: new RegExp(`^-${HASH}{5}$`),
  StatefulSet: /^-\d+$/,
  Job: new RegExp(`^(-\\d+)?-${HASH}{5}$`),
  CronJob: new RegExp(`^-\\d+((-\\d+)?-${HASH}{5})?$`),
}

export interface EventQuery {
  /** Path of the list of events, with a selector. */
  readonly path: string
  /** Undefined: all events of the list belong to the object. */
  readonly keep: ((event: KubeObject) => boolean) | undefined
}

/** The events of an object. Children that are gone count too, so their names decide and not their uids. */
export function eventQuery(object: KubeObject): EventQuery {
  const { metadata } = object
  const kind = kubernetesKind(object)
  const { name = '', namespace = '', uid = '' } = metadata
  const inside = namespace === '' ? '' : `/namespaces/${encodeURIComponent(namespace)}`
  const path = `/api/v1${inside}/events`
  const children = CHILD_NAMES[kind]
  if (children !== undefined) {
    const keep = (event: KubeObject): boolean => {
      const { involvedObject } = event as Event
      if (involvedObject.uid === uid) return true
      const of = involvedObject.name ?? ''
      return of.startsWith(name) && involvedObject.kind !== kind && children.test(of.slice(name.length))
    }
    return { path, keep }
  }
  // The kubelet writes the name of its node in place of the uid.
  const selector =
    kind === 'Node' ? `involvedObject.kind=Node,involvedObject.name=${name}` : `involvedObject.uid=${uid}`
  return { path: `${path}?fieldSelector=${encodeURIComponent(selector)}`, keep: undefined }
}
