/** What every printer of kubectl is, and what it prints. */
import { isJsonObject, type JsonObject, type JsonValue } from '#lib/json-value.ts'

/** An event of a watch, where those are shown and not only the objects in them. */
export class WatchEvent {
  readonly type: string
  readonly object: JsonObject

  constructor(type: string, object: JsonObject) {
    this.type = type
    this.object = object
  }

  /** The order that Go's struct has. */
  toJSON(): JsonObject {
    return { type: this.type, object: this.object }
  }
}

export type Printable = JsonObject | WatchEvent

/** Where printed text goes. */
export interface Output {
  write(text: string): void
}

/**
 * Prints objects, one after the other. Some remember what they printed before: headers come once, documents of YAML are
 * separated. Throws a PrintError with upstream's text, perhaps after it wrote something.
 */
export interface Printer {
  print(object: Printable, out: Output): void
}

export class PrintError extends Error {}

/** As upstream recognizes unstructured lists. */
export function isList(object: JsonObject): boolean {
  return Array.isArray(object.items)
}

export function itemsOf(object: JsonObject): JsonObject[] {
  return Array.isArray(object.items) ? (object.items as JsonObject[]) : []
}

/** Throws where neither apiVersion nor kind is there. */
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
