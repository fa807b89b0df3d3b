/** Records events about pods and about the node of a kubelet. */
import type { Pod } from '#apis/core/v1.ts'
import type { EventRecorder } from '#client/events/event-recorder.ts'

import type { EventSpec } from '../pod/events.ts'

/** `fieldPath` is set for events about a container. */
export type RecordPodEvent = (pod: Pod, event: EventSpec, fieldPath?: string) => void

export type RecordNodeEvent = (event: EventSpec) => void

export function podEvents(recorder: EventRecorder): RecordPodEvent {
  return ({ metadata }, event, fieldPath) => {
    const { namespace = '', name = '', uid = '', resourceVersion = '' } = metadata
    const about = { kind: 'Pod', namespace, name, uid, apiVersion: 'v1', resourceVersion }
    recorder.record(fieldPath === undefined ? about : { ...about, fieldPath }, event)
  }
}

export function nodeEvents(recorder: EventRecorder, name: string): RecordNodeEvent {
  return (event) => recorder.record({ kind: 'Node', name, apiVersion: 'v1' }, event)
}
