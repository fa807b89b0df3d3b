/** Prints custom columns (`-o custom-columns`): a header and a JSONPath for each. */
import type { JsonObject } from '#lib/json/value.ts'

import { compileJsonPath, type JsonPath, relaxedPath } from '../jsonpath/jsonpath.ts'
import { goShow } from '../templates/go-value.ts'
import { isList, itemsOf, type Printable, type Printer, PrintError, WatchEvent } from './printer.ts'
import { withTabs } from './tabs.ts'
import { escapeTerminal } from './terminal-text.ts'

export interface CustomColumn {
  readonly header: string
  readonly path: string
}

/** Parses `NAME:.metadata.name,IMAGE:.spec.containers[0].image`. Throws upstream's error. */
export function parseColumns(spec: string): CustomColumn[] {
  if (spec === '') throw new PrintError('custom-columns format specified but no custom columns given')
  return spec.split(',').map((part) => {
    const colon = part.indexOf(':')
    if (colon < 0) {
      throw new PrintError(`unexpected custom-columns spec: ${part}, expected <header>:<json-path-expr>`)
    }
    return { header: part.slice(0, colon), path: relaxedPath(part.slice(colon + 1)) }
  })
}

const FILE_FORMAT = 'Expected format is one line of space separated headers, one line of space separated column specs.'

/** Parses a file of two lines: headers, and paths below them. */
export function parseColumnsFile(text: string): CustomColumn[] {
  const lines = text.split('\n')
  if (text === '') throw new PrintError(`invalid template, missing header line. ${FILE_FORMAT}`)
  if (lines[1] === undefined || (lines[1] === '' && lines.length === 2)) {
    throw new PrintError(`invalid template, missing spec line. ${FILE_FORMAT}`)
  }
  const words = (line: string): string[] => line.split(/\s+/u).filter((word) => word !== '')
  const [headers, specs] = [words(lines[0] ?? ''), words(lines[1])]
  if (headers.length !== specs.length) {
    throw new PrintError(`number of headers (${headers.length}) and field specifications (${specs.length}) don't match`)
  }
  return headers.map((header, at) => ({ header, path: relaxedPath(specs[at] ?? '') }))
}

export interface CustomColumnsOptions {
  readonly noHeaders?: boolean
}

/** Prints headers once, and again when the output switches between objects and lists. */
export function customColumnsPrinter(columns: readonly CustomColumn[], options: CustomColumnsOptions = {}): Printer {
  let last: string | undefined
  return {
    print: (printable, out) =>
      withTabs(out, (tabs) => {
        const kind = kindOf(printable)
        if (options.noHeaders !== true && kind !== last) {
          tabs.write(`${columns.map(({ header }) => header).join('\t')}\n`)
          last = kind
        }
        const paths = columns.map(({ path }) => compileJsonPath(path))
        const object = printable instanceof WatchEvent ? printable.toJSON() : printable
        for (const each of kind === 'list' ? itemsOf(object) : [object]) tabs.write(lineOf(paths, each))
      }),
  }
}

function kindOf(printable: Printable): 'event' | 'list' | 'object' {
  if (printable instanceof WatchEvent) return 'event'
  return isList(printable) ? 'list' : 'object'
}

function lineOf(paths: readonly JsonPath[], object: JsonObject): string {
  return `${paths.map((path) => cellOf(path, object)).join('\t')}\n`
}

function cellOf(path: JsonPath, object: JsonObject): string {
  const found = path.find(object)
  const none = found.length === 0 || found[0]?.length === 0 ? ['<none>'] : []
  return [...none, ...found.flat().map((value) => escapeTerminal(goShow(value)))].join(',')
}
