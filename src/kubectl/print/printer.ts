/** The interface of kubectl's printers and their input. */
import { isJsonObject, type JsonObject, type JsonValue } from '#lib/json/value.ts'

/** A watch event, for printers that show more than its object. */
export class WatchEvent {
  readonly type: string
  readonly object: JsonObject

  constructor(type: string, object: JsonObject) {
    this.type = type
    this.object = object
  }

  /** The field order of Go's struct. */
  toJSON(): JsonObject {
    return { type: this.type, object: this.object }
  }
}

export type Printable = JsonObject | WatchEvent

/** The output of a printer. */
export interface Output {
  write(text: string): void
}

/**
 * Prints objects one after the other. Printers keep state: headers are printed once, YAML documents are separated.
 * Throws PrintError with upstream's text, possibly after partial output.
 */
export interface Printer {
  print(object: Printable, out: Output): void
}

export class PrintError extends Error {}

/** Upstream's test for unstructured lists. */
export function isList(object: JsonObject): boolean {
  return Array.isArray(object.items)
}

export function itemsOf(object: JsonObject): JsonObject[] {
  return Array.isArray(object.items) ? (object.items as JsonObject[]) : []
}

/** Throws without apiVersion and kind. */
export function requireKind(object: JsonObject): void {
  const hasKind = textOf(object.kind) !== '' || textOf(object.apiVersion) !== ''
  if (!hasKind) {
    throw new PrintError('missing apiVersion or kind; try GetObjectKind().SetGroupVersionKind() if you know the type')
  }
}

export function textOf(value: JsonValue | undefined): string {
  return typeof value === 'string' ? value : ''
}

export function metadataOf(object: JsonObject): JsonObject {
  return isJsonObject(object.metadata) ? object.metadata : {}
}
