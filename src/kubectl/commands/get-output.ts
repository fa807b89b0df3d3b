/** The flags and printers that `kubectl get` and its watch share. */
import { type Flag, flag } from '#lib/flags/flags.ts'
import { bool, string } from '#lib/flags/kinds.ts'
import { strings } from '#lib/flags/list-kinds.ts'

import type { Info } from '../builder/select-options.ts'
import type { Invocation } from '../command.ts'
import {
  ALL_NAMESPACES_FLAG,
  CHUNK_FLAG,
  FIELD_SELECTOR_FLAG,
  type FileFlags,
  fileFlags,
  SELECTOR_FLAG,
} from '../flag-sets.ts'
import { AT_FLAG, SPEED_FLAG } from '../past/moment-flags.ts'
import type { Printer } from '../print/printer.ts'
import type { TableOptions } from '../print/table.ts'
import { GET_FORMATS, noPrinter, printerOf, type PrintFlags, printFlags } from '../printing.ts'

interface OwnFlags {
  readonly 'no-headers': Flag<boolean>
  readonly 'show-labels': Flag<boolean>
  readonly 'sort-by': Flag<string>
  readonly 'label-columns': Flag<readonly string[]>
  readonly 'show-kind': Flag<boolean>
  readonly raw: Flag<string>
  readonly watch: Flag<boolean>
  readonly 'watch-only': Flag<boolean>
  readonly 'output-watch-events': Flag<boolean>
  readonly 'ignore-not-found': Flag<boolean>
  readonly 'server-print': Flag<boolean>
  readonly subresource: Flag<string>
}

/** A mapped type has an index signature; an interface has none. */
type Plain<T> = { readonly [K in keyof T]: T[K] }

type GetFlags = Plain<
  OwnFlags &
    PrintFlags &
    FileFlags &
    typeof SELECTOR_FLAG &
    typeof FIELD_SELECTOR_FLAG &
    typeof ALL_NAMESPACES_FLAG &
    typeof CHUNK_FLAG &
    typeof AT_FLAG &
    typeof SPEED_FLAG
>

export const GET_FLAGS: GetFlags = {
  ...printFlags(GET_FORMATS),
  ...fileFlags('identifying the resource to get from a server.'),
  ...SELECTOR_FLAG,
  ...FIELD_SELECTOR_FLAG,
  ...ALL_NAMESPACES_FLAG,
  ...CHUNK_FLAG,
  ...AT_FLAG,
  ...SPEED_FLAG,
  'no-headers': flag(bool, false, 'Omit the header line of tables and custom columns.'),
  'show-labels': flag(bool, false, 'Show all labels in the last column.'),
  'sort-by': flag(
    string,
    '',
    "JSONPath of the field to sort by ('{.metadata.name}'). The field must be a number or a string.",
  ),
  'label-columns': flag(strings, [], 'Comma-separated list of labels to show in columns.', { shorthand: 'L' }),
  'show-kind': flag(bool, false, 'Show the type in front of the name.'),
  raw: flag(string, '', 'Path on the server to GET.'),
  watch: flag(bool, false, 'After listing the objects, watch for changes.', { shorthand: 'w' }),
  'watch-only': flag(bool, false, 'Watch for changes without listing the objects first.'),
  'output-watch-events': flag(bool, false, 'With a watch, print the type of each event.'),
  'ignore-not-found': flag(bool, false, 'A missing object is no error.'),
  'server-print': flag(bool, true, 'Let the server render the table.'),
  subresource: flag(string, '', 'Get this subresource of the object.'),
}

export type GetInvocation = Invocation<GetFlags>

interface RowOptions {
  readonly withKind: boolean
  readonly withNamespace: boolean
}

export function tableOptions(
  { flags, clock }: GetInvocation,
  kind: Info['kind'],
  { withKind, withNamespace }: RowOptions,
): TableOptions {
  const name = kind.kind.toLowerCase()
  return {
    noHeaders: flags['no-headers'],
    wide: flags.output === 'wide',
    withNamespace,
    showLabels: flags['show-labels'],
    labelColumns: flags['label-columns'],
    nowMs: () => clock.now(),
    ...(withKind && { kind: kind.group === '' ? name : `${name}.${kind.group}` }),
  }
}

export async function wholePrinter(invocation: GetInvocation): Promise<Printer> {
  const { flags } = invocation
  const isKnown = flags.output !== 'wide' || flags.template !== ''
  if (!isKnown) throw noPrinter(flags.output, GET_FORMATS)
  return printerOf(invocation, { formats: GET_FORMATS })
}
