/** Flags as they come from three sides: built in, by a person through the environment, by the server. */

/** Items between semicolons, each of which may stand in quotes: `"--v=2";"--node-ip=10.0.0.1"`. */
export function splitOptions(text: string): string[] {
  return text
    .split(';')
    .map((item) =>
      item
        .trim()
        .replace(/^"(.*)"$/s, '$1')
        .trim(),
    )
    .filter((item) => item !== '')
}

/** The first of each flag counts, so that earlier lists have the last word. */
export function mergeOptions(...lists: readonly (readonly string[])[]): string[] {
  const merged = new Map<string, string>()
  for (const option of lists.flat()) {
    const key = keyOf(option)
    if (!merged.has(key)) merged.set(key, option)
  }
  return [...merged.values()]
}

function keyOf(option: string): string {
  const at = option.indexOf('=')
  return at < 0 ? option : option.slice(0, at)
}
