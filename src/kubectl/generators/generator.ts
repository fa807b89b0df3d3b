/** The base of commands that create one object from flags, such as `kubectl create deployment`. */
import { flag, type Flag } from '#lib/flags/flags.ts'
import { bool } from '#lib/flags/kinds.ts'
import type { JsonObject } from '#lib/json/value.ts'

import { withMadeConfig } from '../apply/last-applied.ts'
import { type Command, defineCommand, type Flags, type Invocation, usageError } from '../command.ts'
import { asError, KubectlError } from '../errors.ts'
import {
  DRY_RUN_FLAG,
  dryRunOf,
  dryRunQuery,
  fieldManagerFlag,
  fieldValidationOf,
  VALIDATE_FLAG,
  withDryRun,
} from '../flag-sets.ts'
import { type PrintFlags, printerOf, printFlags } from '../printing.ts'
import type { AnyObject } from '../session/rest.ts'

/** A mapped type has an index signature; an interface has none. */
type Plain<T> = { readonly [K in keyof T]: T[K] }

type SharedFlags = Plain<
  PrintFlags &
    typeof DRY_RUN_FLAG &
    typeof VALIDATE_FLAG & { readonly 'field-manager': Flag<string>; readonly 'save-config': Flag<boolean> }
>

const SHARED: SharedFlags = {
  ...printFlags(),
  ...DRY_RUN_FLAG,
  ...VALIDATE_FLAG,
  ...fieldManagerFlag('kubectl-create'),
  'save-config': flag(bool, false, 'Save the configuration in an annotation for kubectl apply.'),
}

export interface Generator<F extends Flags> {
  readonly name: string
  readonly aliases?: readonly string[]
  readonly use: string
  readonly long: string
  readonly flags: F
  readonly completesFlags?: NonNullable<Command['completesFlags']>
  /** The prefix of the server's error text; none by default. */
  readonly failure?: string
  /** Upstream accepts `--save-config` for services without effect. */
  readonly remembers?: boolean
  /** The object, with fields in the order of upstream's types, which is the print order. Throws errors for the user. */
  readonly make: (name: string, invocation: Invocation<F & SharedFlags>) => Promise<AnyObject> | AnyObject
}

export function defineGenerator<const F extends Flags>(generator: Generator<F>): Command {
  const { make, flags, failure, remembers = true, ...rest } = generator
  return defineCommand({
    ...rest,
    flags: { ...SHARED, ...flags },
    async run(given) {
      const invocation = given as unknown as Invocation<F & SharedFlags>
      const own = given as unknown as Invocation<SharedFlags>
      const name = nameIn(own)
      const dryRun = dryRunOf(own.flags['dry-run'], own)
      const fieldValidation = fieldValidationOf(own.flags.validate)
      const printer = await printerOf(own, { operation: withDryRun('created', dryRun), keepOrder: true })
      await own.session.config()
      const { namespace, isExplicit } = await own.session.namespace()
      const made = await make(name, invocation)
      const kind = dryRun === 'client' ? undefined : await served(own, made)
      const isPlaced = isExplicit && kind?.namespaced !== false && !CLUSTER_SCOPED.has(made.kind ?? '')
      const object = withMadeConfig(isPlaced ? placed(made, namespace) : made, remembers && own.flags['save-config'])
      const query = { fieldManager: own.flags['field-manager'], fieldValidation, ...dryRunQuery(dryRun) }
      const rest = kind === undefined ? undefined : await own.session.rest()
      const created =
        kind === undefined || rest === undefined
          ? object
          : await rest.create({ kind, namespace }, object, query).catch((error: unknown) => {
              if (failure === undefined) throw error
              throw new KubectlError(`${failure}${asError(error).message}`, { cause: error })
            })
      printer.print(created as unknown as JsonObject, own.stdout)
    },
  })
}

const CLUSTER_SCOPED: ReadonlySet<string> = new Set(['Namespace', 'ClusterRole', 'ClusterRoleBinding', 'PriorityClass'])

async function served(
  { session }: Invocation<SharedFlags>,
  { apiVersion = '', kind = '' }: AnyObject,
): ReturnType<Mapping> {
  return (await session.mapper()).ofObject(apiVersion, kind)
}

type Mapping = Awaited<ReturnType<Invocation['session']['mapper']>>['ofObject']

/** The namespace comes after the name. */
function placed(object: AnyObject, namespace: string): AnyObject {
  const { name, ...metadata } = object.metadata
  return { ...object, metadata: { ...(name !== undefined && { name }), namespace, ...metadata } }
}

/** Throws KubectlError. */
export function nameIn(invocation: Pick<Invocation, 'args' | 'argsBeforeDash' | 'path'>): string {
  const { args, argsBeforeDash } = invocation
  const count = argsBeforeDash === -1 ? args.length : argsBeforeDash
  if (count !== 1) throw usageError(invocation, `exactly one NAME is required, got ${count}`)
  return args[0] as string
}

/** The first fields of an object. */
export function beginning(apiVersion: string, kind: string): { readonly kind: string; readonly apiVersion: string } {
  return { kind, apiVersion }
}
