/** kubectl's Go templates (`-o go-template`): compiled once, executed for many objects. */
import { goQuote } from '#lib/go/text.ts'
import type { JsonValue } from '#lib/json/value.ts'
import { writeJson } from '#lib/json/write.ts'

import { execute } from './execute.ts'
import { FUNCTIONS } from './functions.ts'
import { parseTemplates, TemplateError } from './parse.ts'
import { show } from './reference.ts'

/** kubectl's name of the template, the prefix of messages. */
const NAME = 'output'

export interface GoTemplateOptions {
  /** A missing key prints `<no value>` instead of failing; true by default. */
  readonly allowMissingKeys?: boolean
}

export interface GoTemplate {
  /**
   * Executes the template. `write` receives the text and, before a TemplateError is thrown, the partial output and
   * upstream's report.
   */
  fillIn(data: JsonValue, write: (text: string) => void): void
}

/** Throws TemplateError for an invalid template. */
export function compileGoTemplate(source: string, options: GoTemplateOptions = {}): GoTemplate {
  const trees = parseTemplates(NAME, source, new Set(FUNCTIONS.keys()))
  const missingKeyFails = options.allowMissingKeys === false
  return {
    fillIn(data, write) {
      try {
        execute({ name: NAME, source, trees, missingKeyFails, write }, data)
      } catch (error) {
        if (!(error instanceof TemplateError)) throw error
        write(
          `Error executing template: ${error.message}. Printing more information for debugging the template:\n` +
            `\ttemplate was:\n\t\t${source}\n` +
            `\traw data was:\n\t\t${writeJson(data, { sortedKeys: true })}\n` +
            `\tobject given to template engine was:\n\t\t${show(data)}\n\n`,
        )
        throw new TemplateError(`error executing template ${goQuote(source)}: ${error.message}`)
      }
    },
  }
}
