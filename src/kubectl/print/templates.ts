/** Prints objects with JSONPath and Go templates. */
import { compileJsonPath, type JsonPathOptions, showOrExplain } from '../jsonpath/jsonpath.ts'
import { compileGoTemplate, type GoTemplateOptions } from '../templates/template.ts'
import { type Printable, type Printer, PrintError, WatchEvent } from './printer.ts'

function jsonOf(printable: Printable): Exclude<Printable, WatchEvent> {
  return printable instanceof WatchEvent ? printable.toJSON() : printable
}

/** Throws upstream's error for an invalid template. */
export function jsonPathPrinter(template: string, options: JsonPathOptions = {}): Printer {
  const path = compiledOrThrow(`error parsing jsonpath ${template}`, () => compileJsonPath(template, options))
  return { print: (object, out) => out.write(showOrExplain(path, template, jsonOf(object))) }
}

/** Throws upstream's error for an invalid template. */
export function goTemplatePrinter(template: string, options: GoTemplateOptions = {}): Printer {
  const compiled = compiledOrThrow(`error parsing template ${template}`, () => compileGoTemplate(template, options))
  return { print: (object, out) => compiled.fillIn(jsonOf(object), (text) => out.write(text)) }
}

function compiledOrThrow<T>(complaint: string, compile: () => T): T {
  try {
    return compile()
  } catch (error) {
    throw new PrintError(`${complaint}, ${(error as Error).message}`)
  }
}
