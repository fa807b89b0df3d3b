/** `-o`: maps an output format to its printer, with upstream's errors for unknown formats. */
import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'

import { type Flag, flag } from '#lib/flags/flags.ts'
import { bool, string } from '#lib/flags/kinds.ts'
import { goQuote } from '#lib/go/text.ts'

import { KubectlError } from './errors.ts'
import type { Printer } from './print/printer.ts'

export interface PrintFlags {
  readonly output: Flag<string>
  readonly template: Flag<string>
  readonly 'allow-missing-template-keys': Flag<boolean>
  readonly 'show-managed-fields': Flag<boolean>
}

const STRUCTURED = ['json', 'yaml', 'kyaml']
const GO_TEMPLATES = ['go-template', 'go-template-file', 'template', 'templatefile']
const JSONPATHS = ['jsonpath', 'jsonpath-as-json', 'jsonpath-file']
const CUSTOM_COLUMNS = ['custom-columns', 'custom-columns-file']

/** The output formats of most commands. */
const FORMATS = [...STRUCTURED, 'name', ...GO_TEMPLATES, ...JSONPATHS]

/** The output formats of `get`. */
export const GET_FORMATS: readonly string[] = [...FORMATS, ...CUSTOM_COLUMNS, 'wide']

export function printFlags(formats: readonly string[] = FORMATS): PrintFlags {
  return {
    output: flag(string, '', `Output format. One of: (${formats.join(', ')}).`, { shorthand: 'o' }),
    template: flag(string, '', 'Template string or file for -o=go-template and -o=go-template-file.'),
    'allow-missing-template-keys': flag(bool, true, 'Ignore missing fields in templates.'),
    'show-managed-fields': flag(bool, false, 'Show managedFields in JSON and YAML output.'),
  }
}

export interface PrintContext {
  readonly flags: {
    readonly output: string
    readonly template?: string
    readonly 'allow-missing-template-keys'?: boolean
    readonly 'show-managed-fields'?: boolean
    readonly 'no-headers'?: boolean
  }
  readonly cwd: string
}

export interface PrinterOptions {
  /** The text after the name without a format: `created`. Without it there is no such printer. */
  readonly operation?: string
  /** Keeps the key order, for generated objects. */
  readonly keepOrder?: boolean
  /** The formats of most commands by default. */
  readonly formats?: readonly string[]
}

/** Throws KubectlError for an unknown format. */
export async function printerOf(printing: PrintContext, options: PrinterOptions = {}): Promise<Printer> {
  const { flags } = printing
  const { formats = FORMATS, operation } = options
  const { template: given = '' } = flags
  const output = given !== '' && flags.output === '' ? 'go-template' : flags.output
  const [format, template] = formatOf(output, given)
  const isAmong = (known: readonly string[], name: string): boolean => known.includes(name) && formats.includes(name)
  if (isAmong(JSONPATHS, format) || isAmong(GO_TEMPLATES, format)) return templatePrinter(format, template, printing)
  const lower = format.toLowerCase()
  if (isAmong(STRUCTURED, lower)) return structuredPrinter(lower, flags, options)
  if (isAmong(CUSTOM_COLUMNS, format)) return columnsPrinter(format, template, printing)
  if (lower === 'name' || (output === '' && operation !== undefined)) {
    const { namePrinter } = await import('./print/structured.ts')
    return namePrinter(lower === 'name' ? {} : { operation: operation ?? '' })
  }
  throw noPrinter(output, formats)
}

export function noPrinter(output: string, formats: readonly string[]): KubectlError {
  const known = [...formats].sort().join(',')
  return new KubectlError(
    `unable to match a printer suitable for the output format ${goQuote(output)}, allowed formats are: ${known}`,
  )
}

/** The format and its template, from `-o` or from `--template`. */
function formatOf(output: string, template: string): [string, string] {
  if (template !== '') return [output, template]
  const at = output.indexOf('=')
  const name = at < 0 ? output : output.slice(0, at)
  const takesTemplate = [...JSONPATHS, ...GO_TEMPLATES, ...CUSTOM_COLUMNS].includes(name)
  return takesTemplate ? [name, at < 0 ? '' : output.slice(at + 1)] : [output, '']
}

async function structuredPrinter(
  format: string,
  flags: PrintContext['flags'],
  { keepOrder = false }: PrinterOptions,
): Promise<Printer> {
  const { jsonPrinter, kyamlPrinter, omittingManagedFields, yamlPrinter } = await import('./print/structured.ts')
  const make = { json: jsonPrinter, yaml: yamlPrinter, kyaml: kyamlPrinter }[format as 'json' | 'yaml' | 'kyaml']
  const printer = make({ keepOrder })
  return flags['show-managed-fields'] === true ? printer : omittingManagedFields(printer)
}

async function templatePrinter(format: string, given: string, { flags, cwd }: PrintContext): Promise<Printer> {
  if (given === '') throw new KubectlError('template format specified but no template given')
  const template = format.endsWith('file') ? await readTemplate(given, cwd) : given
  const allowMissingKeys = flags['allow-missing-template-keys'] ?? true
  if (JSONPATHS.includes(format)) {
    const { jsonPathPrinter } = await import('./print/templates.ts')
    return jsonPathPrinter(template, { allowMissingKeys, asJson: format === 'jsonpath-as-json' })
  }
  const { goTemplatePrinter } = await import('./print/templates.ts')
  return goTemplatePrinter(template, { allowMissingKeys })
}

async function readTemplate(file: string, cwd: string): Promise<string> {
  return readFile(resolve(cwd, file), 'utf8').catch((cause: Error) => {
    throw new KubectlError(`error reading --template ${file}, ${goFileError(file, cause)}`, { cause })
  })
}

/** Go's text for a failed open. */
export function goFileError(file: string, { code, message }: NodeJS.ErrnoException): string {
  const reasons: Readonly<Record<string, string>> = {
    ENOENT: 'no such file or directory',
    EACCES: 'permission denied',
    ENOTDIR: 'not a directory',
  }
  if (code === 'EISDIR') return `read ${file}: is a directory`
  return `open ${file}: ${reasons[code ?? ''] ?? message}`
}

async function columnsPrinter(format: string, spec: string, { flags, cwd }: PrintContext): Promise<Printer> {
  if (spec === '') throw new KubectlError('custom-columns format specified but no custom columns given')
  const { customColumnsPrinter, parseColumns, parseColumnsFile } = await import('./print/custom-columns.ts')
  const noHeaders = flags['no-headers'] === true
  if (format === 'custom-columns') return customColumnsPrinter(parseColumns(spec), { noHeaders })
  const text = await readFile(resolve(cwd, spec), 'utf8').catch((cause: Error) => {
    throw new KubectlError(`error reading template ${spec}, ${goFileError(spec, cause)}\n`, { cause })
  })
  return customColumnsPrinter(parseColumnsFile(text), { noHeaders: false })
}
