/** Objects as they are: JSON, YAML, KYAML and names. */
import { isJsonObject, type JsonObject } from '#lib/json-value.ts'
import { writeJson } from '#lib/json-write.ts'
import { stringifyYaml } from '#lib/yaml-write.ts'

import { writeKyaml } from './kyaml.ts'
import {
  isList,
  itemsOf,
  metadataOf,
  type Output,
  type Printable,
  type Printer,
  PrintError,
  requireKind,
  textOf,
  WatchEvent,
} from './printer.ts'

export interface JsonPrinterOptions {
  /**
   * Keys stay in their order, as upstream's are where it prints what it made itself and did not get from a server; else
   * they are sorted.
   */
  readonly keepOrder?: boolean
}

export function jsonPrinter({ keepOrder = false }: JsonPrinterOptions = {}): Printer {
  return {
    print(object, out) {
      if (object instanceof WatchEvent) {
        const { type, object: inside } = object
        out.write(`{"type":${writeJson(type)},"object":${writeJson(inside, { sortedKeys: true })}}\n`)
        return
      }
      requireKind(object)
      out.write(`${writeJson(object, { sortedKeys: !keepOrder, indent: 4 })}\n`)
    },
  }
}

export function yamlPrinter(): Printer {
  let printed = 0
  return {
    print(object, out) {
      if (printed++ > 0) out.write('---\n')
      if (!(object instanceof WatchEvent)) requireKind(object)
      out.write(stringifyYaml(object))
    },
  }
}

export function kyamlPrinter(options: JsonPrinterOptions = {}): Printer {
  return {
    print(object, out) {
      const isEvent = object instanceof WatchEvent
      if (!isEvent) requireKind(object)
      const keepOrder = options.keepOrder === true
      out.write(writeKyaml(isEvent ? object.toJSON() : object, { keepOrder, keepOuterOrder: isEvent }))
    },
  }
}

export interface NamePrinterOptions {
  /** What was done: `created`, `configured`. Nothing for `-o name`. */
  readonly operation?: string
}

/** `deployment.apps/web`, and what was done with it. */
export function namePrinter({ operation = '' }: NamePrinterOptions = {}): Printer {
  const print = (printable: Printable, out: Output): void => {
    const object = printable instanceof WatchEvent ? printable.object : printable
    if (isList(object)) {
      for (const item of itemsOf(object)) print(item, out)
      return
    }
    requireKind(object)
    out.write(`${nameOf(object)}${operation === '' ? '' : ` ${operation}`}\n`)
  }
  return { print }
}

/** `kind.group/name`, in lower case but for the name. */
export function nameOf(object: JsonObject): string {
  const name = textOf(metadataOf(object).name) || '<unknown>'
  const kind = textOf(object.kind).toLowerCase()
  if (kind === '') throw new PrintError(`missing kind for resource with name ${name}`)
  const apiVersion = textOf(object.apiVersion)
  const group = apiVersion.includes('/') ? apiVersion.slice(0, apiVersion.indexOf('/')) : ''
  return group === '' ? `${kind}/${name}` : `${kind}.${group}/${name}`
}

/** Leaves out who set which field, of an object and of the items of a list. The object itself stays as it is. */
export function withoutManagedFields<T extends Printable>(printable: T): T {
  // Upstream's printer does not look into events.
  if (printable instanceof WatchEvent) return printable
  const object: JsonObject = { ...printable }
  if (isJsonObject(object.metadata) && Object.hasOwn(object.metadata, 'managedFields')) {
    const { managedFields: _, ...rest } = object.metadata
    object.metadata = rest
  }
  if (isList(object))
    object.items = itemsOf(object).map((item) => (isJsonObject(item) ? withoutManagedFields(item) : item))
  return object as T
}

/** A printer that leaves them out. */
export function omittingManagedFields(printer: Printer): Printer {
  return { print: (object, out) => printer.print(withoutManagedFields(object), out) }
}
