/** `kubectl get -w`: prints the current objects, then every change, as one table or as a sequence of objects. */
import type { JsonObject } from '#lib/json/value.ts'
import { StatusError } from '#meta/status.ts'

import { isList, select, type Selection } from '../builder/builder.ts'
import type { Info, SelectOptions } from '../builder/select-options.ts'
import { KubectlError } from '../errors.ts'
import { interruptible } from '../interruption.ts'
import { type Output, type Printer, WatchEvent } from '../print/printer.ts'
import { isTable as isTableObject, tablePrinter } from '../print/table.ts'
import { TabWriter } from '../print/tabs.ts'
import type { AnyObject, Target } from '../session/rest.ts'
import { type GetInvocation, tableOptions, wholePrinter } from './get-output.ts'

const INDIVIDUAL = 'watch is only supported on individual resources and resource collections'

interface WatchOptions {
  readonly selecting: SelectOptions
  readonly isTable: boolean
}

export async function watchObjects(invocation: GetInvocation, { selecting, isTable }: WatchOptions): Promise<void> {
  const { flags } = invocation
  const selection = await select(selecting)
  const infos = await watchable(selection)
  const [info] = infos
  if (info === undefined) return
  const withNamespace = flags['all-namespaces'] && info.kind.namespaced
  const printer = isTable
    ? tablePrinter(tableOptions(invocation, info.kind, { withKind: flags['show-kind'], withNamespace }))
    : await wholePrinter(invocation)
  const out = isTable ? new TabWriter() : invocation.stdout
  const isCollection = info.name === ''
  const begun = infos.map(({ object }) => object as AnyObject)
  for (const object of begun) printBegun(printer, object, { ...invocation, out })
  flush(out, invocation)
  if (infos.length > 1 && !selection.isList) throw tooMany(selection, infos.length)
  const resourceVersion = isCollection ? (begun.at(-1)?.metadata.resourceVersion ?? '') : '0'
  const following = {
    printer,
    out,
    target: targetOf(info),
    query: {
      ...selecting.asking?.query,
      resourceVersion,
      labelSelector: flags.selector.trim(),
      fieldSelector: isCollection ? flags['field-selector'].trim() : `metadata.name=${info.name}`,
    },
    accept: selecting.asking?.accept,
    // For a single object the first event repeats the printed state.
    skipsFirst: !isCollection,
  }
  await interruptible(invocation.signal, () => followChanges(invocation, following))
}

/** Throws for unreadable objects and for lists in files. */
async function watchable(selection: Selection): Promise<readonly Info[]> {
  const { infos, error } = await selection.infos()
  if (error !== undefined) throw error
  if (infos.some(({ source, object }) => source !== '' && isList(object as AnyObject))) {
    throw new KubectlError(`${INDIVIDUAL}, but a list of resources is found`)
  }
  return infos
}

/** The writer remembers the column widths, so that later rows align with earlier ones. */
function flush(out: Output, { stdout }: GetInvocation): void {
  if (out instanceof TabWriter) stdout.write(out.flush())
}

function tooMany({ kinds }: Selection, count: number): KubectlError {
  return new KubectlError(
    kinds.length > 0
      ? 'you may only watch a single resource or type of resource at a time'
      : `${INDIVIDUAL} - ${count} resources were found`,
  )
}

function targetOf({ kind, namespace }: Info): Target {
  return { kind, namespace }
}

/** Prints the current objects; with `--watch-only` only the header of the table. */
function printBegun(
  printer: Printer,
  object: AnyObject,
  { flags, out }: Pick<GetInvocation, 'flags'> & { readonly out: Output },
): void {
  for (const part of isList(object) ? itemsOf(object) : [object]) {
    const shown = flags['watch-only'] ? withoutRows(part) : part
    if (shown === undefined) continue
    const json = shown as unknown as JsonObject
    printer.print(flags['output-watch-events'] ? new WatchEvent('ADDED', json) : json, out)
  }
}

/** Items of a list omit the kind of the list. */
function itemsOf({ apiVersion = '', kind = '', items }: AnyObject): AnyObject[] {
  return (items as AnyObject[]).map((item) => ({ apiVersion, kind: kind.replace(/List$/, ''), ...item }))
}

function withoutRows(object: AnyObject): AnyObject | undefined {
  return isTableObject(object as unknown as JsonObject) ? { ...object, rows: [] } : undefined
}

interface WatchState {
  readonly printer: Printer
  readonly out: Output
  readonly target: Target
  readonly query: Readonly<Record<string, string | number | boolean | undefined>>
  readonly accept: string | undefined
  readonly skipsFirst: boolean
}

async function followChanges(
  invocation: GetInvocation,
  { printer, out, target, query, accept, skipsFirst }: WatchState,
): Promise<void> {
  const { flags, session } = invocation
  const rest = await session.rest()
  let isSkipping = skipsFirst
  for await (const event of rest.watch(target, { query, accept })) {
    if (event.type === 'ERROR') throw new StatusError(event.object)
    const shown = isSkipping ? withoutRows(event.object) : event.object
    isSkipping = false
    if (shown === undefined) continue
    const json = shown as unknown as JsonObject
    printer.print(flags['output-watch-events'] ? new WatchEvent(event.type, json) : json, out)
    flush(out, invocation)
  }
}
