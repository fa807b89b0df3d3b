/** Formats metrics in Prometheus' text format 0.0.4: numbers as Go prints them, escapes, HELP and TYPE lines. */

/** The shortest text that reads back as the same number, in Go's `%g` (1e+06, 5e-05, 123456). */
export function formatFloat(value: number): string {
  if (Number.isInteger(value) && value < 1e6 && value > -1e6) return Object.is(value, -0) ? '-0' : String(value)
  if (Number.isNaN(value)) return 'NaN'
  if (!Number.isFinite(value)) return value > 0 ? '+Inf' : '-Inf'
  const size = Math.abs(value)
  if (size >= 1e-4 && size < 1e6) return String(value)
  // Go writes at least two digits of exponent, JavaScript as few as there are.
  return value.toExponential().replace(/([+-])(\d)$/, '$10$2')
}

/** `a="1",b="2"` with values escaped. */
export function renderLabels(pairs: readonly (readonly [string, string])[]): string {
  return pairs.map(([name, value]) => `${name}="${escapeLabel(value)}"`).join(',')
}

export interface FamilyText {
  readonly name: string
  readonly help: string
  readonly stability?: string
  readonly deprecatedSince?: string
}

/** The two lines above a family's samples. */
export function renderHelp({ name, help, stability, deprecatedSince }: FamilyText, type: string): string {
  const since = deprecatedSince === undefined ? '' : `(Deprecated since ${deprecatedSince}) `
  const level = stability === undefined ? '' : `[${stability}] `
  return `# HELP ${name} ${escapeHelp(level + since + help)}\n# TYPE ${name} ${type}\n`
}

function escapeHelp(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')
}

function escapeLabel(text: string): string {
  return /["\\\n]/.test(text) ? escapeHelp(text).replaceAll('"', '\\"') : text
}
