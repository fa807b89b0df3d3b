/** Formats help for flags in pflag's columns, with a titled section per group, as Kubernetes components do. */
import { goQuote } from '../go/text.ts'
import type { Flag, FlagGroups, FlagSet, NamedFlag } from './flags.ts'

/** The parts of a long help that `--help` leaves to `--help-all`. */
export interface ShortHelp {
  /** Shorter texts, by the name of the flag. */
  readonly brief?: Readonly<Record<string, string>>
  /** Names of flags that only `--help-all` prints. */
  readonly omit?: readonly string[]
}

/**
 * Every group's section. `columns` is the terminal's width, or 0 to leave lines whole (output that is not a terminal).
 * On a terminal the text stands below its flag, elsewhere beside it; flags are in the order of their names.
 */
export function printUsage(set: FlagSet<FlagGroups>, columns: number, { brief, omit }: ShortHelp = {}): string {
  const sections = Object.entries(set.groups).map(([title, group]) => {
    const shown = Object.keys(group)
      .sort()
      .map((name) => ({ ...(group[name] as Flag<unknown>), name }))
      .filter(({ hidden, deprecated, shown: isShown }) => !hidden && (deprecated === undefined || isShown))
      .filter(({ name }) => omit?.includes(name) !== true)
      .map((each) => ({ ...each, usage: brief?.[each.name] ?? each.usage }))
    if (shown.length === 0) return ''
    const lines = columns >= INDENT + NARROWEST ? shown.map((each) => stacked(each, columns)) : aligned(shown)
    return `\n${title.slice(0, 1).toUpperCase()}${title.slice(1)} flags:\n\n${lines.join('\n')}\n`
  })
  return sections.join('')
}

/** Text narrower than this is not worth wrapping; pflag has the same limit. */
const NARROWEST = 24
const INDENT = 16
/** How far a last word may stick out, so that it does not stand alone on a line. */
const SLOP = 5

function aligned(flags: readonly NamedFlag[]): string[] {
  const rows = flags.map((each) => ({ head: head(each), text: description(each) }))
  const width = Math.max(...rows.map((row) => row.head.length)) + 3
  return rows.map(({ head, text }) => `${head.padEnd(width)}${text.replaceAll('\n', `\n${' '.repeat(width)}`)}`)
}

function stacked(each: NamedFlag, columns: number): string {
  const margin = `\n${' '.repeat(INDENT)}`
  const lines = wrap(description(each), columns - INDENT - SLOP)
  return head(each) + lines.map((line) => margin + line).join('')
}

/** Breaks at white space; keeps the text's own line breaks. */
function wrap(text: string, width: number): string[] {
  return text.split('\n').flatMap((paragraph) => {
    const lines: string[] = []
    let rest = paragraph
    while (rest.length >= width + SLOP) {
      const space = rest.lastIndexOf(' ', width - 1)
      if (space <= 0) break
      lines.push(rest.slice(0, space))
      rest = rest.slice(space + 1)
    }
    return [...lines, rest]
  })
}

/** `  -n, --num int`, with what the flag means alone when that is not obvious: `--dry-run string[="unchanged"]`. */
function head(each: NamedFlag): string {
  const short = each.shorthand !== undefined && each.shorthandDeprecated === undefined ? `-${each.shorthand},` : '   '
  const { hint } = unquote(each)
  const alone = each.alone ?? each.kind.alone
  const bare = alone === undefined || (each.kind.type === 'bool' && alone === 'true')
  const optional = bare ? '' : each.kind.type === 'string' ? `[="${alone}"]` : `[=${alone}]`
  return `  ${short} --${each.name}${hint === '' ? '' : ` ${hint}`}${optional}`
}

function description(each: NamedFlag): string {
  const { usage } = unquote(each)
  const initial = each.kind.print(each.initial)
  const shown = each.kind.type === 'string' ? goQuote(initial) : initial
  const otherwise = each.kind.plain.includes(initial) ? '' : ` (default ${shown})`
  return `${usage}${otherwise}${each.deprecated === undefined ? '' : ` (DEPRECATED: ${each.deprecated})`}`
}

/** A name in back quotes inside the usage stands for the value. */
function unquote(each: NamedFlag): { hint: string; usage: string } {
  const match = /`([^`]*)`/.exec(each.usage)
  if (match === null) return { hint: each.kind.hint, usage: each.usage }
  const name = match[1] ?? ''
  return { hint: name, usage: each.usage.replace(match[0], () => name) }
}
