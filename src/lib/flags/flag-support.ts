/**
 * Declares how far a flag of upstream is supported. An unsupported flag accepts only its default, or accepts any value
 * and logs that the value has no effect.
 */
import { type Flag, flag, type FlagGroups, type FlagOptions } from './flags.ts'
import type { Kind } from './kinds.ts'

export interface ServerFlag<T> extends Flag<T> {
  /** Only the default is accepted; the text ends the sentence that says so. */
  readonly unsupported?: string
  /** Any value is accepted and none changes anything; the text says why. */
  readonly idle?: string
}

/** Flags with these values. */
export type FlagsOf<V> = { readonly [N in keyof V]: ServerFlag<V[N]> }

export type FlagGroup = Readonly<Record<string, ServerFlag<unknown>>>

/** A flag that must keep its default. `why` is what to do instead, or what is missing. */
export function unsupported<T>(
  kind: Kind<T>,
  initial: NoInfer<T>,
  why: string,
  options: FlagOptions & { readonly usage?: string } = {},
): ServerFlag<T> {
  const { usage = `Only the default is supported: ${why}`, ...rest } = options
  return { ...flag(kind, initial, usage, rest), unsupported: why }
}

/** A flag that is accepted and changes nothing. */
export function idle<T>(kind: Kind<T>, initial: NoInfer<T>, why: string, options: FlagOptions = {}): ServerFlag<T> {
  return { ...flag(kind, initial, `Accepted without effect: ${why}`, options), idle: why }
}

export interface SupportFindings {
  /** The errors, one sentence for each flag. */
  readonly errors: readonly string[]
  /** The log messages. */
  readonly notes: readonly string[]
}

/** The unsupported settings among the given flags. Flags at their default are fine. */
export function findUnsupported(
  groups: FlagGroups,
  values: Readonly<Record<string, unknown>>,
  changed: ReadonlySet<string>,
): SupportFindings {
  const errors: string[] = []
  const notes: string[] = []
  for (const [name, each] of Object.values(groups).flatMap((group) => Object.entries(group as FlagGroup))) {
    if (!changed.has(name)) continue
    const isDefault = each.kind.print(values[name]) === each.kind.print(each.initial)
    if (each.unsupported !== undefined && !isDefault) {
      errors.push(`--${name}=${each.kind.print(values[name])} is not supported: ${each.unsupported}`)
    }
    if (each.idle !== undefined) notes.push(`--${name} has no effect: ${each.idle}`)
  }
  return { errors, notes }
}
