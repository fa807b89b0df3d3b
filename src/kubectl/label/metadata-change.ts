/** The shared part of `label` and `annotate`: flags, selection, and the patch of a metadata map. */
import { type Flag, flag } from '#lib/flags/flags.ts'
import { bool, string } from '#lib/flags/kinds.ts'

import type { SelectOptions } from '../builder/select-options.ts'
import type { Invocation } from '../command.ts'
import { KubectlError } from '../errors.ts'
import {
  ALL_NAMESPACES_FLAG,
  DRY_RUN_FLAG,
  type DryRun,
  FIELD_SELECTOR_FLAG,
  fieldManagerFlag,
  type FileFlags,
  fileFlags,
  SELECTOR_FLAG,
} from '../flag-sets.ts'
import { type PrintFlags, printFlags } from '../printing.ts'
import { RECORD_FLAG } from '../recording.ts'
import type { AnyObject } from '../session/rest.ts'
import type { Changes } from './pairs.ts'

/** A mapped type has an index signature; an interface has none. */
type Plain<T> = { readonly [K in keyof T]: T[K] }

interface OwnFlags {
  readonly overwrite: Flag<boolean>
  readonly list: Flag<boolean>
  readonly local: Flag<boolean>
  readonly all: Flag<boolean>
  readonly 'resource-version': Flag<string>
  readonly 'field-manager': Flag<string>
}

export type ChangeFlags = Plain<
  OwnFlags &
    PrintFlags &
    FileFlags &
    typeof SELECTOR_FLAG &
    typeof FIELD_SELECTOR_FLAG &
    typeof ALL_NAMESPACES_FLAG &
    typeof DRY_RUN_FLAG &
    typeof RECORD_FLAG
>

/** `what`: `label` or `annotation`. */
export function changeFlags(what: string, manager: string): ChangeFlags {
  return {
    ...printFlags(),
    ...fileFlags(`identifying the resource to update the ${what}${what === 'label' ? 's' : ''}`),
    ...SELECTOR_FLAG,
    ...FIELD_SELECTOR_FLAG,
    ...ALL_NAMESPACES_FLAG,
    ...DRY_RUN_FLAG,
    ...RECORD_FLAG,
    ...fieldManagerFlag(manager),
    overwrite: flag(bool, false, `A ${what} that is there already may get another value.`),
    list: flag(bool, false, `Show the ${what}s of the resource.`),
    local: flag(bool, false, 'Change the objects in files without contacting a server.'),
    all: flag(bool, false, 'Select all objects of the given types in the namespace.'),
    'resource-version': flag(
      string,
      '',
      'Update only if the object has this resource version. Requires a single object.',
    ),
  }
}

interface MessageWords {
  /** `label` or `annotation`. */
  readonly what: string
  /** The name of files in messages: `pod` or `rsrc`. */
  readonly file: string
}

/** Throws KubectlError. */
export function checkChange(
  { flags }: Invocation<ChangeFlags>,
  { resources, changes, dryRun }: { resources: readonly string[]; changes: Changes; dryRun: DryRun },
  { what, file }: MessageWords,
): void {
  const hasFiles = flags.filename.length > 0 || flags.kustomize !== ''
  const problems: [isSo: boolean, text: string][] = [
    [flags.all && flags.selector !== '', 'cannot set --all and --selector at the same time'],
    [flags.all && flags['field-selector'] !== '', 'cannot set --all and --field-selector at the same time'],
    [
      flags.local && dryRun === 'server',
      'cannot specify --local and --dry-run=server - did you mean --dry-run=client?',
    ],
    [
      flags.local && resources.length > 0,
      `can only use local files by -f ${file}.yaml or --filename=${file}.json when --local=true is set`,
    ],
    [flags.local && !hasFiles, `one or more files must be specified as -f ${file}.yaml or --filename=${file}.json`],
    [
      !flags.local && resources.length === 0 && !hasFiles,
      'one or more resources must be specified as <resource> <name> or <resource>/<name>',
    ],
    [changes.set.size === 0 && changes.removed.length === 0 && !flags.list, `at least one ${what} update is required`],
  ]
  const problem = problems.find(([isSo]) => isSo)
  if (problem !== undefined) throw new KubectlError(problem[1])
}

export async function changeSelecting(
  invocation: Invocation<ChangeFlags>,
  resources: readonly string[],
): Promise<SelectOptions> {
  const { flags, session } = invocation
  const { namespace, isExplicit } = await session.namespace()
  const base = {
    session,
    io: invocation,
    continueOnError: true,
    namespace,
    requireNamespace: isExplicit,
    flatten: true,
  }
  if (flags.local) return { ...base, files: flags, local: true }
  return {
    ...base,
    files: flags,
    labelSelector: flags.selector,
    fieldSelector: flags['field-selector'],
    allNamespaces: flags['all-namespaces'],
    args: resources,
    allowEmptySelector: flags.all,
    latest: true,
  }
}

/** The map with the changes applied, and the changed keys. */
export function changed(
  before: Readonly<Record<string, string>>,
  { set, removed }: Changes,
): { readonly map: Record<string, string>; readonly added: boolean; readonly removed: boolean } {
  const map = { ...before }
  for (const [key, value] of set) map[key] = value
  for (const key of removed) delete map[key]
  return {
    map,
    added: [...set].some(([key, value]) => before[key] !== value),
    removed: removed.some((key) => Object.hasOwn(before, key)),
  }
}

/** A merge patch between two maps; undefined if they are equal. */
export function mapPatch(
  field: 'labels' | 'annotations',
  before: Readonly<Record<string, string>> | undefined,
  after: Readonly<Record<string, string>>,
): Record<string, unknown> {
  const entries = Object.entries(after).filter(([key, value]) => before?.[key] !== value)
  const gone = Object.keys(before ?? {}).filter((key) => !Object.hasOwn(after, key))
  if (entries.length === 0 && gone.length === 0) return {}
  return { [field]: { ...Object.fromEntries(entries), ...Object.fromEntries(gone.map((key) => [key, null])) } }
}

/** `--list`: one sorted line for each entry. */
export function listing(
  what: string,
  object: AnyObject,
  map: Readonly<Record<string, string>>,
  isSingle: boolean,
): string {
  const { kind = '', apiVersion = '', metadata } = object
  const group = apiVersion.includes('/') ? apiVersion.slice(0, apiVersion.indexOf('/')) : ''
  const head = isSingle ? '' : `Listing ${what}s for ${kind}.${group}/${metadata.name ?? ''}:\n`
  const lines = Object.keys(map)
    .sort()
    .map((key) => `${isSingle ? '' : ' '}${key}=${map[key] ?? ''}\n`)
  return head + lines.join('')
}
