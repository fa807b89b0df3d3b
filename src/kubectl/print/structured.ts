/** Prints whole objects: JSON, YAML, KYAML and names. */
import { isJsonObject, type JsonObject } from '#lib/json/value.ts'
import { writeJson } from '#lib/json/write.ts'
import { stringifyYaml } from '#lib/yaml/write.ts'

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
  /** Keeps the key order, as upstream does for objects that it generated; otherwise keys are sorted. */
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
  /** The operation: `created`, `configured`. Unused for `-o name`. */
  readonly operation?: string
}

/** `deployment.apps/web` and the operation. */
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

/** `kind.group/name`, in lower case except the name. */
export function nameOf(object: JsonObject): string {
  const name = textOf(metadataOf(object).name) || '<unknown>'
  const kind = textOf(object.kind).toLowerCase()
  if (kind === '') throw new PrintError(`missing kind for resource with name ${name}`)
  const apiVersion = textOf(object.apiVersion)
  const group = apiVersion.includes('/') ? apiVersion.slice(0, apiVersion.indexOf('/')) : ''
  return group === '' ? `${kind}/${name}` : `${kind}.${group}/${name}`
}

/** Omits managed fields of an object or of the items of a list, without changing the argument. */
export function withoutManagedFields<T extends Printable>(printable: T): T {
  // Upstream's printer does not look into watch events.
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

/** A printer that omits managed fields. */
export function omittingManagedFields(printer: Printer): Printer {
  return { print: (object, out) => printer.print(withoutManagedFields(object), out) }
}
