/** The options and results of `select`, which finds the objects of a command. */
import type { ServedKind } from '#client/discovery.ts'
import type { ProgramContext } from '#lib/program.ts'

import type { AnyObject, RequestOptions } from '../session/rest.ts'
import type { Session } from '../session/session.ts'

/** One object, or with a selector one list; `object` is undefined until it is read. */
export interface Info {
  readonly kind: ServedKind
  namespace: string
  name: string
  /** The file of the object; empty if it came from the server. */
  readonly source: string
  object?: AnyObject
  readonly subresource?: string
}

export interface Files {
  readonly filename?: readonly string[]
  readonly kustomize?: string
  readonly recursive?: boolean
}

export interface SelectOptions {
  readonly session: Session
  readonly io: Pick<ProgramContext, 'cwd' | 'stdin'>
  readonly namespace?: string
  /** Objects in files must have this namespace. */
  readonly requireNamespace?: boolean
  readonly allNamespaces?: boolean
  readonly files?: Files
  /** The command reads standard input for another purpose, so no file may be `-`. */
  readonly stdinInUse?: boolean
  readonly labelSelector?: string
  readonly fieldSelector?: string
  readonly all?: boolean
  readonly subresource?: string
  readonly chunkSize?: number
  /** `TYPE NAME…`, `TYPE/NAME…` or `TYPE,TYPE`. */
  readonly args?: readonly string[]
  /** A type without a name selects all objects of that type. */
  readonly allowEmptySelector?: boolean
  /** Names of this type, unless they have the form `TYPE/NAME`. */
  readonly resourceNames?: { readonly type: string; readonly names: readonly string[] }
  readonly resourceTypes?: readonly string[]
  readonly continueOnError?: boolean
  /** Reads the objects in files from the server. */
  readonly latest?: boolean
  /** Splits lists into items. */
  readonly flatten?: boolean
  readonly singleResourceType?: boolean
  /** True by default: reads named objects from the server. */
  readonly requireObject?: boolean
  /** Uses only the objects in files, without a server. */
  readonly local?: boolean
  /** Validates the basic fields of objects in files, as `--validate` requires. */
  readonly validate?: boolean
  /** Throws for objects in files that the command does not support, before discovery. */
  readonly checkObject?: (object: AnyObject) => void
  /** The Accept header for reads, for example for tables. */
  readonly asking?: RequestOptions
}

/** `TYPE/NAME`. */
export interface Tuple {
  readonly type: string
  readonly name: string
}
