/** Flags that several commands share, with upstream's names, shorthands and defaults, and their parsers. */
import { type Flag, flag } from '#lib/flags/flags.ts'
import { parseBool } from '#lib/flags/go-literals.ts'
import { bool, int, string } from '#lib/flags/kinds.ts'
import { strings } from '#lib/flags/list-kinds.ts'
import { goQuote } from '#lib/go/text.ts'
import type { ProgramContext } from '#lib/program.ts'

import { KubectlError } from './errors.ts'
import { logWarning } from './klog.ts'

type Output = Pick<ProgramContext, 'stderr' | 'clock'>

export interface FileFlags {
  readonly filename: Flag<readonly string[]>
  readonly kustomize: Flag<string>
  readonly recursive: Flag<boolean>
}

/** `-f`, `-k` and `-R`; `what` ends the sentence "Filename, directory, or URL to files …". */
export function fileFlags(what: string): FileFlags {
  return {
    filename: flag(strings, [], `Filename, directory, or URL to files ${what}`, { shorthand: 'f' }),
    kustomize: flag(string, '', 'Process a kustomization directory. Cannot be used together with -f or -R.', {
      shorthand: 'k',
    }),
    recursive: flag(bool, false, 'Process directories given with -f recursively.', { shorthand: 'R' }),
  }
}

export const SELECTOR_FLAG: { readonly selector: Flag<string> } = {
  selector: flag(
    string,
    '',
    "Label selector, supports '=', '==', '!=', 'in' and 'notin' (-l key1=value1,key2=value2,key3 in (value3)). Objects must match all requirements.",
    { shorthand: 'l' },
  ),
}

export const FIELD_SELECTOR_FLAG: { readonly 'field-selector': Flag<string> } = {
  'field-selector': flag(
    string,
    '',
    "Field selector, supports '=', '==' and '!=' (--field-selector key1=value1,key2=value2). Each type supports only a few fields.",
  ),
}

export const ALL_NAMESPACES_FLAG: { readonly 'all-namespaces': Flag<boolean> } = {
  'all-namespaces': flag(
    bool,
    false,
    'Select objects in all namespaces and ignore --namespace and the namespace of the context.',
    {
      shorthand: 'A',
    },
  ),
}

export const CHUNK_FLAG: { readonly 'chunk-size': Flag<number> } = {
  'chunk-size': flag(int, 500, 'Number of objects per request for large lists. 0 disables paging.'),
}

export const DRY_RUN_FLAG: { readonly 'dry-run': Flag<string> } = {
  'dry-run': flag(
    string,
    'none',
    'One of "none", "server" or "client". client: print the object without sending it. server: send it without persisting it.',
    { alone: 'unchanged' },
  ),
}

export type DryRun = 'none' | 'client' | 'server'

/** Throws KubectlError. */
export function dryRunOf(text: string, output: Output): DryRun {
  if (text === 'none' || text === 'client' || text === 'server') return text
  if (text === 'unchanged') {
    logWarning(output, 'helpers.go:734', '--dry-run is deprecated and can be replaced with --dry-run=client.')
    return 'client'
  }
  let isDry: boolean
  try {
    isDry = parseBool(text)
  } catch (cause) {
    throw new KubectlError(`Invalid dry-run value (${text}). Must be "none", "server", or "client".`, { cause })
  }
  const instead = isDry ? 'client' : 'none'
  const say = `--dry-run=${text} is deprecated (boolean value) and can be replaced with --dry-run=${instead}.`
  logWarning(output, 'helpers.go:748', say)
  return instead
}

/** The operation, as printed after a name. */
export function withDryRun(operation: string, dryRun: DryRun): string {
  if (dryRun === 'none') return operation
  return `${operation} (${dryRun === 'server' ? 'server dry run' : 'dry run'})`
}

/** The query parameters of a request. */
export function dryRunQuery(dryRun: DryRun): { readonly dryRun?: string } {
  return dryRun === 'server' ? { dryRun: 'All' } : {}
}

export function fieldManagerFlag(initial: string): { readonly 'field-manager': Flag<string> } {
  return { 'field-manager': flag(string, initial, 'Name of the manager that owns the fields.') }
}

export const VALIDATE_FLAG: { readonly validate: Flag<string> } = {
  validate: flag(
    string,
    'strict',
    'One of strict (or true), warn, ignore (or false). strict: the server rejects unknown and duplicate fields. warn: it returns warnings. ignore: it drops such fields.',
    { alone: 'strict' },
  ),
}

/** The server's name of the value. Throws KubectlError. */
export function fieldValidationOf(text: string): 'Strict' | 'Warn' | 'Ignore' {
  if (text === 'warn') return 'Warn'
  if (text === 'strict') return 'Strict'
  if (text === 'ignore') return 'Ignore'
  try {
    return parseBool(text) ? 'Strict' : 'Ignore'
  } catch (cause) {
    throw new KubectlError(
      `invalid - validate option ${goQuote(text)}; must be one of: strict (or true), warn, ignore (or false)`,
      { cause },
    )
  }
}

export const CASCADE_FLAG: { readonly cascade: Flag<string> } = {
  cascade: flag(
    string,
    'background',
    'One of "background", "orphan" or "foreground": the deletion policy for dependent objects.',
    { alone: 'background' },
  ),
}

/** The propagation policy. Throws KubectlError. */
export function cascadeOf(text: string, output: Output): 'Background' | 'Foreground' | 'Orphan' {
  if (text === 'background') return 'Background'
  if (text === 'foreground') return 'Foreground'
  if (text === 'orphan') return 'Orphan'
  let isCascading: boolean
  try {
    isCascading = parseBool(text)
  } catch (cause) {
    throw new KubectlError(`invalid cascade value (${text}). Must be "background", "foreground", or "orphan"`, {
      cause,
    })
  }
  const instead = isCascading ? 'background' : 'orphan'
  output.stderr.write(
    `warning: --cascade=${text} is deprecated (boolean value) and can be replaced with --cascade=${instead}.\n`,
  )
  return isCascading ? 'Background' : 'Orphan'
}
