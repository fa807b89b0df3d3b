/** Rules for single values of cluster.yml. Each says what is wrong and what to write instead, or nothing. */
import { parseCidr, parseIp } from '#lib/cidr.ts'
import { dns1123Subdomain, labelValue, qualifiedName } from '#meta/validation/names.ts'

type Complaint = string | undefined

export function isHost(value: string): Complaint {
  if (parseIp(value) !== undefined) return undefined
  if (/^[\d.]+$/.test(value)) return `"${value}" is no IP address`
  return dns1123Subdomain(value.toLowerCase()).length === 0
    ? undefined
    : `"${value}" is neither an IP address nor a host name`
}

export function isIp(value: string): Complaint {
  return parseIp(value) === undefined ? `"${value}" is no IP address` : undefined
}

/** One block, or two of different families with a comma between. */
export function isRange(value: string): Complaint {
  const blocks = value.split(',').map((part) => ({ part, block: parseCidr(part) }))
  const wrong = blocks.find(({ block }) => block === undefined)
  if (wrong) return `"${wrong.part}" is no range of addresses; write it as in 10.43.0.0/16`
  const loose = blocks.find(({ block }) => block?.address !== block?.base)
  if (loose) return `"${loose.part}" has bits set behind its prefix; write the first address of the range`
  if (blocks.length > 2) return 'There are more than two ranges; one for IPv4 and one for IPv6 is all'
  if (blocks.length === 2 && blocks[0]?.block?.family === blocks[1]?.block?.family) {
    return 'Two ranges must be of different families, one IPv4 and one IPv6'
  }
  return undefined
}

export function isPortRange(value: string): Complaint {
  const [, from, to] = /^(\d{1,5})-(\d{1,5})$/.exec(value) ?? []
  if (from === undefined || to === undefined) return `"${value}" is no range of ports; write it as in 30000-32767`
  if (Number(from) < 1 || Number(to) > 65_535) return 'Ports are between 1 and 65535'
  return Number(from) > Number(to) ? `"${value}" ends before it begins` : undefined
}

/** As Go writes durations. */
export function isDuration(value: string): Complaint {
  return /^(\d+(\.\d+)?(h|m|s|ms))+$/.test(value) ? undefined : `"${value}" is no duration; write it as in 12h or 90m`
}

/** Milliseconds. */
export function durationMs(value: string): number {
  const units: Readonly<Record<string, number>> = { h: 3_600_000, m: 60_000, s: 1000, ms: 1 }
  return [...value.matchAll(/(\d+(?:\.\d+)?)(ms|h|m|s)/g)].reduce(
    (sum, [, number, unit = 's']) => sum + Number(number) * (units[unit] ?? 0),
    0,
  )
}

export function isDomain(value: string): Complaint {
  return dns1123Subdomain(value).length === 0 ? undefined : `"${value}" is no domain; write it as in cluster.local`
}

export function areLabels(labels: Readonly<Record<string, string>>): Complaint {
  for (const [key, value] of Object.entries(labels)) {
    const [wrong] = [...qualifiedName(key), ...labelValue(value)]
    if (wrong !== undefined) return `Label "${key}: ${value}": ${wrong}`
  }
  return undefined
}

/** Without dashes in front, as `extra_args` are written. */
export function areFlags(args: Readonly<Record<string, unknown>>): Complaint {
  const wrong = Object.keys(args).find((name) => !/^[a-z0-9][\w.-]*$/i.test(name))
  if (wrong === undefined) return undefined
  return `"${wrong}" is no name of a flag; write it without dashes in front, as in "max-pods: 110"`
}

/** Our programs run on the machine itself: a bind that changes nothing is fine, another has nothing to bind into. */
export function areBinds(binds: readonly string[]): Complaint {
  for (const bind of binds) {
    const [source = '', target = ''] = bind.split(':')
    if (!source.startsWith('/') || !target.startsWith('/')) return `"${bind}" is no bind; write it as in /srv:/srv`
    if (source !== target) {
      return `"${bind}" shows a folder under another name; services run on the machine itself, so give "${source}" in extra_args`
    }
  }
  return undefined
}

export function areVariables(variables: readonly string[]): Complaint {
  const wrong = variables.find((variable) => !/^[A-Za-z_]\w*=/.test(variable))
  return wrong === undefined ? undefined : `"${wrong}" is no variable; write it as in NAME=value`
}

export function isHttpUrl(value: string): Complaint {
  return URL.canParse(value) && /^https?:\/\//.test(value)
    ? undefined
    : `"${value}" is no address; write it as in https://10.0.0.1:2379`
}

export function isPem(label: string): (value: string) => Complaint {
  return (value) =>
    value.includes('-----BEGIN ')
      ? undefined
      : `This is no ${label} in PEM form (-----BEGIN …); give its text, not a path`
}

export function isAbsolute(value: string): Complaint {
  return value.startsWith('/') ? undefined : `"${value}" must be an absolute path`
}
