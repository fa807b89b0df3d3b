/** What `select` is asked for, and what it finds. */
import type { ServedKind } from '#client/discovery.ts'
import type { ProgramContext } from '#lib/program.ts'

import type { AnyObject, Asking } from './rest.ts'
import type { Session } from './session.ts'

/** One object, or with a selector one list of them; `object` is missing until it was read. */
export interface Info {
  readonly kind: ServedKind
  namespace: string
  name: string
  /** The file it was read from; empty when the server was asked. */
  readonly source: string
  object?: AnyObject
  readonly subresource?: string
}

export interface Files {
  readonly filename: readonly string[]
  readonly kustomize?: string
  readonly recursive?: boolean
}

export interface Selecting {
  readonly session: Session
  readonly io: Pick<ProgramContext, 'cwd' | 'stdin'>
  readonly namespace?: string
  /** Objects of files must be of that namespace. */
  readonly requireNamespace?: boolean
  readonly allNamespaces?: boolean
  readonly files?: Files
  /** The command reads something else from standard input, so no file may be `-`. */
  readonly stdinInUse?: boolean
  readonly labelSelector?: string
  readonly fieldSelector?: string
  readonly all?: boolean
  readonly subresource?: string
  readonly chunkSize?: number
  /** `TYPE NAME…`, `TYPE/NAME…` or `TYPE,TYPE`. */
  readonly args?: readonly string[]
  /** A type alone means all of that type. */
  readonly allowEmptySelector?: boolean
  /** Names that are of this type unless they say otherwise (`TYPE/NAME`). */
  readonly resourceNames?: { readonly type: string; readonly names: readonly string[] }
  readonly resourceTypes?: readonly string[]
  readonly continueOnError?: boolean
  /** What files name is read from the server. */
  readonly latest?: boolean
  /** Lists are taken apart. */
  readonly flatten?: boolean
  readonly singleResourceType?: boolean
  /** Default true: what is only named is read from the server. */
  readonly requireObject?: boolean
  /** No server is asked: what files hold is all there is. */
  readonly local?: boolean
  /** Files are checked for what every object has, as `--validate` asks. */
  readonly validate?: boolean
  /** Throws for objects of files that the command does not take, before anybody asks where they are served. */
  readonly checkObject?: (object: AnyObject) => void
  /** How the server is asked for objects: a table, say. */
  readonly asking?: Asking
}

/** `TYPE/NAME`. */
export interface Tuple {
  readonly type: string
  readonly name: string
}
