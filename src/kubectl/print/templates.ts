/** Printers that fill in a template: JSONPath and Go's. */
import { compileJsonPath, type JsonPathOptions, showOrExplain } from '../jsonpath/jsonpath.ts'
import { compileGoTemplate, type GoTemplateOptions } from '../templates/template.ts'
import { type Printable, type Printer, PrintError, WatchEvent } from './printer.ts'

function jsonOf(printable: Printable): Exclude<Printable, WatchEvent> {
  return printable instanceof WatchEvent ? printable.toJSON() : printable
}

/** Throws upstream's complaint about what is no template. */
export function jsonPathPrinter(template: string, options: JsonPathOptions = {}): Printer {
  const path = asked(`error parsing jsonpath ${template}`, () => compileJsonPath(template, options))
  return { print: (object, out) => out.write(showOrExplain(path, template, jsonOf(object))) }
}

/** Throws upstream's complaint about what is no template. */
export function goTemplatePrinter(template: string, options: GoTemplateOptions = {}): Printer {
  const compiled = asked(`error parsing template ${template}`, () => compileGoTemplate(template, options))
  return { print: (object, out) => compiled.fillIn(jsonOf(object), (text) => out.write(text)) }
}

function asked<T>(complaint: string, compile: () => T): T {
  try {
    return compile()
  } catch (error) {
    throw new PrintError(`${complaint}, ${(error as Error).message}`)
  }
}
