/** Parses CPU sets in Linux' format: `0-3,8`. Pure. */
import { goQuote } from '#lib/go/text.ts'

/** A string result is the error, in Go's words. */
export function parseCpuSet(text: string): ReadonlySet<number> | string {
  const all = new Set<number>()
  for (const range of text === '' ? [] : text.split(',')) {
    const dash = range.indexOf('-')
    const [first, last] = dash < 0 ? [range, range] : [range.slice(0, dash), range.slice(dash + 1)]
    const wrong = [first, last].find((one) => !/^\d{1,6}$/.test(one))
    if (wrong !== undefined) return `strconv.Atoi: parsing ${goQuote(wrong)}: invalid syntax`
    if (Number(first) > Number(last)) return `invalid range ${goQuote(range)} (${Number(first)} > ${Number(last)})`
    for (let cpu = Number(first); cpu <= Number(last); cpu += 1) all.add(cpu)
  }
  return all
}
