/**
 * Parses `--vmodule`, which sets the verbosity of single loggers. Upstream matches source files; we match logger names.
 */

export interface VmoduleRule {
  /** `*` stands for any text, `?` for any one character. */
  readonly pattern: string
  readonly level: number
}

/** Parses `pattern=N,pattern=N`. Throws with upstream's text. */
export function parseVmodule(text: string): VmoduleRule[] {
  return text
    .split(',')
    .filter((item) => item !== '')
    .map((item) => {
      const [pattern, level, ...rest] = item.split('=')
      if (!pattern || !level || rest.length > 0) throw new Error(`"${item}" does not have the pattern=N format`)
      return { pattern, level: parseLevel(item, level) }
    })
}

function parseLevel(item: string, text: string): number {
  const fault = !/^\d+$/.test(text) ? 'invalid syntax' : Number(text) >= 2 ** 31 ? 'value out of range' : undefined
  if (fault === undefined) return Number(text)
  throw new Error(`parsing verbosity in "${item}": strconv.ParseUint: parsing "${text}": ${fault}`)
}

/**
 * The level of the first rule that fits the logger's whole name or one part of it between dots: a rule for
 * `scheduler` also covers `scheduler.binding`. Less than every level when none fits.
 */
export function levelFor(rules: readonly VmoduleRule[], name: string): number {
  if (rules.length === 0) return -1
  const parts = [name, ...name.split('.')]
  return rules.find(({ pattern }) => parts.some((part) => fits(pattern, part)))?.level ?? -1
}

/** Goes back to the last star only, so the time is bounded by the product of the lengths. */
function fits(pattern: string, text: string): boolean {
  let at = 0
  let star = -1
  let resume = 0
  for (let read = 0; read < text.length;) {
    if (pattern[at] === '*') {
      star = at++
      resume = read
    } else if (pattern[at] === '?' || pattern[at] === text[read]) {
      at++
      read++
    } else if (star >= 0) {
      at = star + 1
      read = ++resume
    } else return false
  }
  return /^\**$/.test(pattern.slice(at))
}
