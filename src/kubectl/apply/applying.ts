/** What both ways of applying are given, and what they give back. */
import type { Invocation } from '../command.ts'
import type { DryRun } from '../flag-sets.ts'
import type { AnyObject } from '../rest.ts'

export interface ApplySettings {
  readonly dryRun: DryRun
  readonly fieldValidation: string
  /** What becomes of what belongs to an object that is deleted. */
  readonly policy: string
  /** Who owns the fields. */
  readonly manager: string
}

export interface Applied {
  readonly object: AnyObject
  /** `created`, `configured`, `unchanged`, `serverside-applied`. */
  readonly operation: string
}

/** The part of an invocation that applying looks at. */
export interface ApplyContext extends Pick<Invocation, 'session' | 'stderr' | 'clock' | 'signal'> {
  readonly flags: {
    readonly force: boolean
    readonly 'force-conflicts': boolean
    readonly 'grace-period': number
    readonly timeout: number
    readonly subresource: string
  }
}
