/** Combines a program's flags from three sources: built in, from the user's environment, from the server. */

/** Splits items at semicolons; items may be quoted: `"--v=2";"--node-ip=10.0.0.1"`. */
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

/** The first value of each flag wins, so earlier lists take precedence. */
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
