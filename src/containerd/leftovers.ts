/** Finds the NAT rules that CNI left for the network of a cluster. Pure. */

/** Chains that CNI's portmap plugin shares between networks. */
const SHARED = ['CNI-HOSTPORT-DNAT', 'CNI-HOSTPORT-SETMARK', 'CNI-HOSTPORT-MASQ'] as const

/**
 * iptables arguments (without `-t nat`) that remove the rules and chains of `network`, from the output of
 * `iptables-save -t nat`. Shared chains are removed when no other network uses them.
 */
export function natRemovals(saved: string, network: string): string[][] {
  const rules = saved.split('\n').flatMap((line) => (line.startsWith('-A ') ? [words(line).slice(1)] : []))
  const isNamed = (rule: readonly string[]): boolean =>
    new RegExp(`\\bname: "${RegExp.escape(network)}" id: `).test(after(rule, '--comment') ?? '')
  const own = new Set(
    rules
      .filter(isNamed)
      .flatMap((rule) => after(rule, '-j') ?? [])
      .filter((chain) => chain.startsWith('CNI-')),
  )
  for (const shared of SHARED) own.delete(shared)
  const isOwn = (rule: readonly string[]): boolean =>
    isNamed(rule) || own.has(rule[0] ?? '') || own.has(after(rule, '-j') ?? '')
  const kept = rules.filter((rule) => !isOwn(rule))
  const isUsed = kept.some(([chain]) => chain === SHARED[0])
  const unused = new Set<string>(isUsed ? [] : SHARED.filter((chain) => saved.includes(`\n:${chain} `)))
  const into = kept.filter((rule) => !unused.has(rule[0] ?? '') && unused.has(after(rule, '-j') ?? ''))
  const gone = [...own, ...unused]
  const deleted = [
    ...rules.filter((rule) => isOwn(rule) && !own.has(rule[0] ?? '') && !unused.has(rule[0] ?? '')),
    ...into,
  ]
  return [
    ...deleted.map((rule) => ['-D', ...rule]),
    ...gone.map((chain) => ['-F', chain]),
    ...gone.map((chain) => ['-X', chain]),
  ]
}

function after(rule: readonly string[], word: string): string | undefined {
  const at = rule.indexOf(word)
  return at < 0 ? undefined : rule[at + 1]
}

/** Splits a line of iptables-save at blanks, except inside quotes with backslash escapes. */
function words(line: string): string[] {
  const found = line.match(/"(?:\\.|[^"\\])*"|\S+/g) ?? []
  return found.map((word) => (word.startsWith('"') ? word.slice(1, -1).replaceAll(/\\(.)/g, '$1') : word))
}
