/** Go templates as kubectl has them (`-o go-template`): made once, filled in for many objects. */
import { goQuote } from '#lib/go-text.ts'
import type { JsonValue } from '#lib/json-value.ts'
import { writeJson } from '#lib/json-write.ts'

import { execute } from './execute.ts'
import { FUNCTIONS } from './functions.ts'
import { parseTemplates, TemplateError } from './parse.ts'
import { show } from './reference.ts'

/** kubectl's name for the template, which messages begin with. */
const NAME = 'output'

export interface GoTemplateOptions {
  /** A key that is not there shows as `<no value>` rather than being an error; on unless said. */
  readonly allowMissingKeys?: boolean
}

export interface GoTemplate {
  /**
   * Fills it in. `write` gets the text, and, where it fails, what was filled in until then and upstream's account of it,
   * before a TemplateError is thrown.
   */
  fillIn(data: JsonValue, write: (text: string) => void): void
}

/** Throws a TemplateError for what is no template. */
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
