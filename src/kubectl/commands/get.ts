/** kubectl get: prints objects of any kind as a table or in another format, once or with a watch. */
import type { JsonObject } from '#lib/json/value.ts'
import { isNotFound } from '#meta/status.ts'

import { select, type Selection } from '../builder/builder.ts'
import type { Info, SelectOptions } from '../builder/select-options.ts'
import { type Command, defineCommand, usageError } from '../command.ts'
import { asError, Failures, failuresOf, KubectlError } from '../errors.ts'
import { requestUriProblem, sendRaw } from '../manifests/raw.ts'
import { GET_FORMATS } from '../printing.ts'
import type { AnyObject, RequestOptions } from '../session/rest.ts'
import { GET_FLAGS, type GetInvocation, tableOptions, wholePrinter } from './get-output.ts'

export const get: Command = defineCommand({
  name: 'get',
  use: `[(-o|--output=)${GET_FORMATS.join('|')}] (TYPE[.VERSION][.GROUP] [NAME | -l label] | TYPE[.VERSION][.GROUP]/NAME ...) [flags] [options]`,
  long: 'Display one or many resources.\n\nUse "kubectl api-resources" for a complete list of supported resources.',
  examples: `# List all pods
kubectl get pods

# List all pods with more columns
kubectl get pods -o wide

# Print a deployment of API version apps/v1 as JSON
kubectl get deployments.v1.apps web -o json

# List replication controllers and services together
kubectl get rc,services

# Print only the phase of a pod
kubectl get -o template pod/web-pod-13je7 --template={{.status.phase}}

# List all pods of all namespaces
kubectl get pods --all-namespaces`,
  flags: GET_FLAGS,
  completes: 'resources',
  completesFlags: { output: { words: GET_FORMATS } },
  async run(invocation) {
    const { flags, args } = invocation
    if (flags.raw !== '' && args.length > 0) {
      throw new KubectlError('arguments may not be passed when --raw is specified')
    }
    if (flags.raw === '') checkArguments(invocation)
    checkFlags(flags)
    if (flags.raw !== '') return sendRaw(invocation, 'GET', flags.raw)
    const isTable = (flags.output === '' && flags.template === '') || flags.output === 'wide'
    const asking = isTable && flags['server-print'] ? tableAsking(flags['sort-by']) : {}
    const selecting = await selectingOf(invocation, asking)
    if (flags.watch || flags['watch-only']) {
      const { watchObjects } = await import('./get-watch.ts')
      return watchObjects(invocation, { selecting, isTable })
    }
    const selection = await select(selecting)
    return isTable ? printTables(invocation, selection) : printWhole(invocation, selection)
  },
})

function checkArguments(invocation: GetInvocation): void {
  const { flags, args, stderr } = invocation
  const isSorting = flags['sort-by'] !== ''
  if (flags.watch) {
    if (isSorting) stderr.write('warning: --watch requested, --sort-by will be ignored for watch events received\n')
  } else if (flags['watch-only']) {
    if (isSorting) stderr.write('warning: --watch-only requested, --sort-by will be ignored\n')
  } else if (args.length === 0 && flags.filename.length === 0 && flags.kustomize === '') {
    stderr.write(
      'You must specify the type of resource to get. Use "kubectl api-resources" for a complete list of supported resources.\n\n',
    )
    throw usageError(
      invocation,
      'Required resource not specified.\nUse "kubectl explain <resource>" for a detailed description of that resource (e.g. kubectl explain pods).',
    )
  }
}

function checkFlags(flags: GetInvocation['flags']): void {
  const { raw, watch, output } = flags
  if (raw !== '') {
    if (watch || flags['watch-only'] || flags.selector !== '') {
      throw new KubectlError(
        '--raw may not be specified with other flags that filter the server request or alter the output',
      )
    }
    if (output !== '') throw new KubectlError('--raw and --output are mutually exclusive')
    const problem = requestUriProblem(raw)
    if (problem !== undefined) throw problem
  }
  if (flags['show-labels'] && output !== '' && output !== 'wide') {
    throw new KubectlError(`--show-labels option cannot be used with ${output} printer`)
  }
  if (flags['output-watch-events'] && !watch && !flags['watch-only']) {
    throw new KubectlError('--output-watch-events option can only be used with --watch or --watch-only')
  }
}

function tableAsking(sortBy: string): RequestOptions {
  const accept = ['v1', 'v1beta1'].map((version) => `application/json;as=Table;v=${version};g=meta.k8s.io`)
  return {
    accept: [...accept, 'application/json'].join(','),
    ...(sortBy !== '' && { query: { includeObject: 'Object' } }),
  }
}

async function selectingOf(invocation: GetInvocation, asking: RequestOptions): Promise<SelectOptions> {
  const { flags, args, session } = invocation
  const { namespace, isExplicit } = await session.namespace()
  const isWatching = flags.watch || flags['watch-only']
  return {
    session,
    io: invocation,
    namespace,
    requireNamespace: isExplicit && !flags['all-namespaces'],
    allNamespaces: flags['all-namespaces'],
    files: flags,
    labelSelector: flags.selector,
    fieldSelector: flags['field-selector'],
    ...(!isWatching && { subresource: flags.subresource }),
    chunkSize: flags['sort-by'] === '' || isWatching ? flags['chunk-size'] : 0,
    args,
    allowEmptySelector: true,
    latest: true,
    asking,
    ...(isWatching ? { singleResourceType: true } : { continueOnError: true, flatten: true }),
  }
}

/** Prints one table for each kind. */
async function printTables(invocation: GetInvocation, selection: Selection): Promise<void> {
  const { flags, session, stdout, stderr } = invocation
  const { infos, error } = await selection.infos()
  const failed = flags['ignore-not-found'] && error !== undefined ? withoutMissing(error) : error
  const withKind = flags['show-kind'] || new Set(infos.map(({ kind }) => kindId(kind))).size > 1
  const sorted = await inOrder(infos, flags['sort-by'])
  let text = ''
  let isFirst = true
  for (const group of groupsOf(sorted)) {
    const table = await tableText(invocation, group, withKind)
    if (table === '') continue
    text += isFirst || flags['no-headers'] ? table : `\n${table}`
    isFirst = false
  }
  stdout.write(text)
  if (text === '' && !flags['ignore-not-found'] && failed === undefined) {
    const isNamespaced = !flags['all-namespaces'] && infos.every(({ kind }) => kind.namespaced)
    const { namespace } = await session.namespace()
    stderr.write(isNamespaced ? `No resources found in ${namespace} namespace.\n` : 'No resources found\n')
  }
  if (failed !== undefined) throw failed
}

function kindId({ group, version, plural }: Info['kind']): string {
  return `${group}/${version}/${plural}`
}

/** Groups consecutive objects of the same kind. */
function groupsOf(infos: readonly Info[]): Info[][] {
  const groups: Info[][] = []
  for (const info of infos) {
    const last = groups.at(-1)
    if (last?.[0] !== undefined && kindId(last[0].kind) === kindId(info.kind)) last.push(info)
    else groups.push([info])
  }
  return groups
}

async function tableText(invocation: GetInvocation, group: readonly Info[], withKind: boolean): Promise<string> {
  const { flags } = invocation
  const [first] = group as [Info]
  const withNamespace = flags['all-namespaces'] && first.kind.namespaced
  const { TabWriter } = await import('../print/tabs.ts')
  const writer = new TabWriter()
  const { tablePrinter } = await import('../print/table.ts')
  const printer = tablePrinter(tableOptions(invocation, first.kind, { withKind, withNamespace }))
  for (const { object } of group) if (object !== undefined) printer.print(object as JsonObject, writer)
  return writer.flush()
}

/** Sorts rows within each table, or all objects. */
async function inOrder(infos: readonly Info[], path: string): Promise<Info[]> {
  if (path === '') return [...infos]
  const { isTable } = await import('../print/table.ts')
  const { sortBy, sortObjects } = await import('../print/sorting.ts')
  const { relaxedPath } = await import('../jsonpath/jsonpath.ts')
  // With several tables upstream sorts the tables themselves, in which it finds no field to sort by.
  const isSeveral = infos.length > 1
  const tables = infos.filter(({ object }) => !isSeveral && object !== undefined && isTable(object as JsonObject))
  if (tables.length === 0) {
    const byObject = new Map(infos.map((info) => [info.object as JsonObject, info]))
    return infos.length < 2
      ? [...infos]
      : sortObjects([...byObject.keys()], path).map((one) => byObject.get(one) as Info)
  }
  const sortedRows = (rows: { object: JsonObject | null }[]): { object: JsonObject | null }[] => {
    try {
      return sortBy(rows, ({ object }) => object, relaxedPath(path))
    } catch {
      // Upstream prints nothing, not even an error, for a table without the field.
      return []
    }
  }
  return infos.map((info) => {
    const table = info.object as AnyObject & { rows: { object: JsonObject | null }[] }
    return { ...info, object: { ...table, rows: sortedRows(table.rows) } }
  })
}

/** A single object, or a list of all. */
async function printWhole(invocation: GetInvocation, selection: Selection): Promise<void> {
  const { flags, stdout } = invocation
  const { infos, error } = await selection.infos()
  const failed = flags['ignore-not-found'] && error !== undefined ? withoutMissing(error) : error
  if (failed !== undefined && selection.isSingle) throw failed
  if (infos.length === 0 && flags['ignore-not-found']) {
    if (failed !== undefined) throw failed
    return
  }
  const printer = await wholePrinter(invocation)
  const objects = infos.flatMap(({ object }) => (object === undefined ? [] : [object]))
  const [first] = objects
  const isOne = selection.isSingle && objects.length === 1 && first !== undefined
  const errors = failed === undefined ? [] : flat(failed)
  try {
    const list = {
      apiVersion: 'v1',
      items: await sortedObjects(objects, flags['sort-by']),
      kind: 'List',
      metadata: { resourceVersion: '' },
    }
    printer.print((isOne ? first : list) as unknown as JsonObject, stdout)
  } catch (thrown) {
    errors.push(asError(thrown))
  }
  const all = failuresOf(errors)
  if (all !== undefined) throw all
}

async function sortedObjects(objects: readonly AnyObject[], path: string): Promise<readonly AnyObject[]> {
  if (path === '' || objects.length < 2) return objects
  const { sortObjects } = await import('../print/sorting.ts')
  return sortObjects(objects as unknown as JsonObject[], path) as unknown as AnyObject[]
}

function flat(error: Error): Error[] {
  return error instanceof Failures ? error.errors.flatMap(flat) : [error]
}

function withoutMissing(error: Error): Error | undefined {
  if (!(error instanceof Failures)) return isNotFound(error) ? undefined : error
  return failuresOf(error.errors.flatMap((one) => withoutMissing(one) ?? []))
}
