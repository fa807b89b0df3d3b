/** Reads the paths of fields that the API server writes in its errors, and follows them in an object. */

/** A field, an index, or the keys of an element in a list: `[name="app"]`. */
export type Step = string | number | Readonly<Record<string, unknown>>

/** `spec.containers[0].image`, `.spec.containers[name="app"].image`, `metadata.labels[a.b/c]`. */
export function parseFieldPath(text: string): readonly Step[] {
  const steps: Step[] = []
  const pattern = /\[((?:[^\]"]|"(?:[^"\\]|\\.)*")*)\]|([^.[]+)/g
  for (const [, inside, name] of text.matchAll(pattern)) {
    if (name !== undefined) steps.push(name)
    else if (inside !== undefined && inside !== '') steps.push(bracketStep(inside))
  }
  return steps
}

function bracketStep(inside: string): Step {
  if (/^\d+$/.test(inside)) return Number(inside)
  const keys = [...inside.matchAll(/([\w-]+)=("(?:[^"\\]|\\.)*"|[^,]+)/g)]
  if (keys.length > 0) return Object.fromEntries(keys.map(([, key = '', value = '']) => [key, jsonOr(value)]))
  return inside.startsWith('"') ? String(jsonOr(inside)) : inside
}

function jsonOr(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** The names and indices on the way through a value, as far as it goes. */
export function stepsIn(value: unknown, path: readonly Step[]): readonly (string | number)[] {
  const found: (string | number)[] = []
  let at = value
  for (const step of path) {
    const key = keyIn(at, step)
    if (key === undefined) break
    found.push(key)
    at = (at as Record<string | number, unknown>)[key]
  }
  return found
}

function keyIn(value: unknown, step: Step): string | number | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  if (typeof step !== 'object') return Object.hasOwn(value, step) ? step : undefined
  const at = Array.isArray(value) ? value.findIndex((item) => hasKeys(item, step)) : -1
  return at < 0 ? undefined : at
}

/** Whether an element of a list has these keys. The server fills in the protocol of a port: an absent key fits. */
export function hasKeys(item: unknown, keys: Readonly<Record<string, unknown>>): boolean {
  if (typeof item !== 'object' || item === null) return false
  const values = item as Record<string, unknown>
  return Object.entries(keys).every(
    ([key, value]) => values[key] === value || (values[key] === undefined && key === 'protocol'),
  )
}

/** `spec.containers[0].image` */
export function pathText(path: readonly (string | number)[]): string {
  return path
    .map((step, at) =>
      typeof step === 'number' ? `[${step}]` : step.includes('.') ? `[${step}]` : at === 0 ? step : `.${step}`,
    )
    .join('')
}
