/**
 * `--record`: the command line in the annotation `kubernetes.io/change-cause`. The flag is deprecated, but still works
 * as in upstream.
 */
import { type Flag, flag, type FlagGroups, type FlagSet, parseFlags } from '#lib/flags/flags.ts'
import { bool } from '#lib/flags/kinds.ts'

import type { AnyObject } from './session/rest.ts'

export const CHANGE_CAUSE = 'kubernetes.io/change-cause'

export const RECORD_FLAG: { readonly record: Flag<boolean> } = {
  record: flag(bool, false, 'Record the command line in an annotation of the resource.', {
    deprecated: '--record will be removed in the future',
  }),
}

/** The members of an invocation that recording uses. */
export interface RecordContext {
  readonly flags: { readonly record?: boolean }
  readonly changeCause: () => string
}

/** The object, with the annotation if `--record` is set. */
export function recorded(recording: RecordContext, object: AnyObject): AnyObject {
  if (recording.flags.record !== true) return object
  const annotations = { ...object.metadata.annotations, [CHANGE_CAUSE]: recording.changeCause() }
  return { ...object, metadata: { ...object.metadata, annotations } }
}

/** A merge patch that adds the annotation; undefined if the object already has it. */
export function recordPatch(recording: RecordContext, object: AnyObject): object | undefined {
  const annotations = recorded(recording, object).metadata.annotations ?? {}
  const cause = annotations[CHANGE_CAUSE]
  if (recording.flags.record !== true || object.metadata.annotations?.[CHANGE_CAUSE] === cause) return undefined
  return { metadata: { annotations: { [CHANGE_CAUSE]: cause } } }
}

/** Hidden in the annotation, because all readers of the object can read it. */
const SECRET_FLAGS: ReadonlySet<string> = new Set(['password', 'token'])

/** The line as upstream records it: arguments first, then each flag by its long name with its value. */
export function causeOf(set: FlagSet<FlagGroups>, args: readonly string[]): string {
  const parsed = parseFlags(set, args)
  const flags = parsed.given.map(({ name, text }) => `--${name}=${SECRET_FLAGS.has(name) ? 'CLASSIFIED' : text}`)
  return ['kubectl', ...parsed.args, ...flags].join(' ')
}
