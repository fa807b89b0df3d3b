/** The shared part of the `set` commands: selects objects and sends changes. */
import type { Container, PodSpec } from '#apis/core/v1.ts'
import { type Flag, flag } from '#lib/flags/flags.ts'
import { bool } from '#lib/flags/kinds.ts'
import type { JsonObject } from '#lib/json/value.ts'
import type { JsonMap } from '#meta/patch/json-map.ts'
import { threeWayMergePatch, threeWayStrategicPatch } from '#meta/patch/three-way.ts'

import type { Info } from '../builder/select-options.ts'
import { selectFor } from '../builder/selection.ts'
import type { Invocation } from '../command.ts'
import { asError, failuresOf, KubectlError } from '../errors.ts'
import {
  DRY_RUN_FLAG,
  type DryRun,
  dryRunQuery,
  fieldManagerFlag,
  type FileFlags,
  fileFlags,
  withDryRun,
} from '../flag-sets.ts'
import { type PrintFlags, printerOf, printFlags } from '../printing.ts'
import { recorded } from '../recording.ts'
import type { AnyObject } from '../session/rest.ts'

/** A mapped type has an index signature; an interface has none. */
type Plain<T> = { readonly [K in keyof T]: T[K] }

export type SetFlags = Plain<
  PrintFlags &
    FileFlags &
    typeof DRY_RUN_FLAG & {
      readonly 'field-manager': Flag<string>
      readonly all: Flag<boolean>
      readonly local: Flag<boolean>
    }
>

/** `what` ends the sentence "Filename, directory, or URL to files …". */
export function setFlags(what = 'identifying the resource to get from a server.'): SetFlags {
  return {
    ...printFlags(),
    ...fileFlags(what),
    ...DRY_RUN_FLAG,
    ...fieldManagerFlag('kubectl-set'),
    all: flag(bool, false, 'Select all objects of the given types in the namespace.'),
    local: flag(bool, false, 'Change the objects in files without contacting a server.'),
  }
}

/** The members of an invocation that the `set` commands use. */
export interface SetInvocation extends Pick<
  Invocation,
  'session' | 'cwd' | 'stdin' | 'stdout' | 'stderr' | 'clock' | 'changeCause'
> {
  /** Some `set` commands lack `--record`. */
  readonly flags: Pick<Invocation<SetFlags>['flags'], keyof SetFlags> & { readonly record?: boolean }
}

export const LOCAL_SERVER_RUN = 'cannot specify --local and --dry-run=server - did you mean --dry-run=client?'

const LOCAL_ONLY =
  "error: you must specify resources by --filename when --local is set.\nExample resource specifications include:\n   '-f rsrc.yaml'\n   '--filename=rsrc.json'"

interface Meant {
  readonly selector?: string
  readonly refusesLocalNames?: boolean
  readonly stdinInUse?: boolean
}

/** Throws all errors at the end. */
export async function selectObjects(
  invocation: SetInvocation,
  resources: readonly string[],
  { selector = '', refusesLocalNames = true, stdinInUse = false }: Meant = {},
): Promise<Info[]> {
  const { flags } = invocation
  if (flags.local && refusesLocalNames && resources.length > 0) throw new KubectlError(LOCAL_ONLY)
  const selection = await selectFor(
    invocation,
    flags.local
      ? { stdinInUse, local: true }
      : { stdinInUse, labelSelector: selector, args: resources, allowEmptySelector: flags.all, latest: true },
  )
  const { infos, error } = await selection.infos()
  if (error !== undefined) throw error
  return infos
}

export interface Setting {
  readonly dryRun: DryRun
  /** The operation: `image updated`. */
  readonly operation: string
  /** The prefix of the server's error text. */
  readonly failure: string
  /** Changes a copy of the object in place; false skips the object. Throws an error for an invalid object. */
  change(object: AnyObject, info: Info): void | boolean | Promise<void | boolean>
  /** Collects errors that do not stop the command. */
  readonly errors?: Error[]
  /** Sends the object even if it is unchanged. */
  readonly sendsAlways?: boolean
}

/** Handles one object after the other and throws all errors at the end. */
export async function changeAll(invocation: SetInvocation, infos: readonly Info[], setting: Setting): Promise<void> {
  const { errors = [] } = setting
  for (const info of infos) {
    await changeOne(invocation, info, setting).catch((error: unknown) => errors.push(asError(error)))
  }
  const failed = failuresOf(errors)
  if (failed !== undefined) throw failed
}

async function changeOne(invocation: SetInvocation, info: Info, setting: Setting): Promise<void> {
  const { flags, session, stdout } = invocation
  const { dryRun, operation, failure, sendsAlways = false } = setting
  const before = info.object as AnyObject
  let after = structuredClone(before)
  try {
    if ((await setting.change(after, info)) === false) return
  } catch (cause) {
    const { kind, name } = info
    throw new KubectlError(`error: ${kind.plural}/${name} ${asError(cause).message}\n`, { cause })
  }
  after = recorded(invocation, after)
  const patch = await patchOf(info, before, after)
  if (Object.keys(patch).length === 0 && !sendsAlways) return
  const printer = await printerOf(invocation, { operation: withDryRun(operation, dryRun), keepOrder: true })
  if (flags.local || dryRun === 'client') {
    printer.print(after as unknown as JsonObject, stdout)
    return
  }
  const query = { fieldManager: flags['field-manager'], ...dryRunQuery(dryRun) }
  const made = await (await session.rest()).patch(info, 'strategic', patch, query).catch((cause: unknown) => {
    if (failure === '') throw cause
    throw new KubectlError(`${failure}${asError(cause).message}`, { cause })
  })
  printer.print(made as unknown as JsonObject, stdout)
}

async function patchOf({ kind }: Info, before: AnyObject, after: AnyObject): Promise<JsonMap> {
  const { schemaFor } = await import('#apis/schemas.ts')
  const schema = schemaFor(kind)
  const versions = { original: before as JsonMap, modified: after as JsonMap, current: before as JsonMap }
  return schema === undefined ? threeWayMergePatch(versions) : threeWayStrategicPatch(schema, versions)
}

const TEMPLATED: ReadonlySet<string> = new Set([
  'ReplicationController',
  'Deployment',
  'DaemonSet',
  'ReplicaSet',
  'StatefulSet',
  'Job',
])

/** The pod spec of a workload. Throws KubectlError without one. */
export function podSpecOf(object: AnyObject): PodSpec {
  const spec = (object['spec'] ?? {}) as {
    template?: { spec?: PodSpec }
    jobTemplate?: { spec?: { template?: { spec?: PodSpec } } }
  }
  const { kind = '' } = object
  const found =
    kind === 'Pod'
      ? (spec as PodSpec)
      : TEMPLATED.has(kind)
        ? spec.template?.spec
        : kind === 'CronJob'
          ? spec.jobTemplate?.spec?.template?.spec
          : undefined
  if (found !== undefined) return found
  const version = (object.apiVersion ?? '').split('/').at(-1) ?? ''
  throw new KubectlError(`the object is not a pod or does not have a pod template: *${version}.${kind}`)
}

/** Containers whose names match, regular ones first; `*` matches any text. */
export function containersOf({ containers = [], initContainers = [] }: Partial<PodSpec>, pattern: string): Container[] {
  const parts = pattern.split('*').map((part) => part.replaceAll(/[.+?^${}()|[\]\\]/g, String.raw`\$&`))
  const fits = new RegExp(`^${parts.join('.*')}$`)
  return [...containers, ...initContainers].filter(({ name }) => fits.test(name))
}
