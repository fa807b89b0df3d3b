/** kubectl's JSONPath: a template is compiled once and evaluated for many objects. */
import { goQuote } from '#lib/go/text.ts'
import { writeJson } from '#lib/json/write.ts'

import { goShow, goSyntax } from '../templates/go-value.ts'
import { evaluate } from './evaluate.ts'
import { JsonPathError, parseTemplate } from './parse.ts'

export interface JsonPathOptions {
  /** A missing key yields no result instead of an error; true by default. */
  readonly allowMissingKeys?: boolean
  /** Prints results as JSON lists, one for each action. */
  readonly asJson?: boolean
}

export interface JsonPath {
  /** The values of each action. Throws JsonPathError. */
  find(data: unknown): (readonly unknown[])[]
  /** The text of the template for an object. Throws JsonPathError. */
  show(data: unknown): string
}

/** Throws JsonPathError for an invalid template. */
export function compileJsonPath(template: string, options: JsonPathOptions = {}): JsonPath {
  const { allowMissingKeys = true, asJson = false } = options
  const root = parseTemplate(template)
  const find = (data: unknown): (readonly unknown[])[] => evaluate(root, data, { allowMissingKeys })
  const text = asJson ? jsonText : plainText
  return { find, show: (data) => find(data).map(text).join('') }
}

/** Like `show`, with upstream's full error text if the evaluation fails. */
export function showOrExplain(path: JsonPath, template: string, data: unknown): string {
  try {
    return path.show(data)
  } catch (error) {
    if (!(error instanceof JsonPathError)) throw error
    const details =
      `Error executing template: ${error.message}. Printing more information for debugging the template:\n` +
      `\ttemplate was:\n\t\t${template}\n` +
      `\tobject given to jsonpath engine was:\n\t\t${goSyntax(data)}\n\n`
    throw new JsonPathError(`error executing jsonpath ${goQuote(template)}: ${details}\n`)
  }
}

function jsonText(values: readonly unknown[]): string {
  return `${writeJson(values, { sortedKeys: true, indent: 4 })}\n`
}

function plainText(values: readonly unknown[]): string {
  return values.map(valueText).join(' ')
}

function valueText(value: unknown): string {
  if (value === null || value === undefined) return 'null'
  return typeof value === 'object' ? writeJson(value, { sortedKeys: true }) : goShow(value)
}

const RELAXED = /^\{\.?([^{}]+)\}$|^\.?([^{}]+)$/

/** Accepts a path without braces or without its leading dot. */
export function relaxedPath(path: string): string {
  if (path === '') return path
  const match = RELAXED.exec(path)
  if (match === null) {
    throw new JsonPathError(
      "unexpected path string, expected a 'name1.name2' or '.name1.name2' or '{name1.name2}' or '{.name1.name2}'",
    )
  }
  return `{.${match[1] ?? match[2]}}`
}
