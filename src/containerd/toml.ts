/** Writes TOML: tables, strings, numbers, booleans and lists of strings. Pure. */

export interface TomlTable {
  readonly [key: string]: string | number | boolean | readonly string[] | TomlTable
}

export function toml(table: TomlTable): string {
  return tableLines(table, []).join('\n') + '\n'
}

function tableLines(table: TomlTable, path: readonly string[]): string[] {
  const entries = Object.entries(table)
  const values = entries
    .filter(([, value]) => !isTable(value))
    .map(([key, value]) => `${keyText(key)} = ${text(value)}`)
  const tables = entries.flatMap(([key, value]) => (isTable(value) ? tableLines(value, [...path, key]) : []))
  const head = path.length === 0 || values.length === 0 ? [] : ['', `[${path.map(keyText).join('.')}]`]
  return [...head, ...values, ...tables]
}

function isTable(value: TomlTable[string]): value is TomlTable {
  return typeof value === 'object' && !Array.isArray(value)
}

function keyText(key: string): string {
  return /^[A-Za-z0-9_-]+$/.test(key) ? key : JSON.stringify(key)
}

/** TOML strings use JSON's escapes, plus one for the delete character. */
function text(value: unknown): string {
  return JSON.stringify(value).replaceAll('\x7f', '\\u007f')
}
