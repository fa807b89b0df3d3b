/** Validates single values of cluster.yml. Each rule returns an error with advice, or undefined. */
import { parseCidr, parseIp } from '#lib/net/cidr.ts'
import { dns1123Subdomain, labelValue, qualifiedName } from '#meta/validation/names.ts'

type Complaint = string | undefined

export function isHost(value: string): Complaint {
  if (parseIp(value) !== undefined) return undefined
  if (/^[\d.]+$/.test(value)) return `"${value}" is not an IP address`
  return dns1123Subdomain(value.toLowerCase()).length === 0
    ? undefined
    : `"${value}" is neither an IP address nor a host name`
}

export function isIp(value: string): Complaint {
  return parseIp(value) === undefined ? `"${value}" is not an IP address` : undefined
}

/** One CIDR, or two comma-separated ones of different families. */
export function isRange(value: string): Complaint {
  const blocks = value.split(',').map((part) => ({ part, block: parseCidr(part) }))
  const wrong = blocks.find(({ block }) => block === undefined)
  if (wrong) return `"${wrong.part}" is not an address range; use a form such as 10.43.0.0/16`
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
  if (from === undefined || to === undefined) return `"${value}" is not a port range; use a form such as 30000-32767`
  if (Number(from) < 1 || Number(to) > 65_535) return 'Ports are between 1 and 65535'
  return Number(from) > Number(to) ? `"${value}" ends before it begins` : undefined
}

/** Go's duration format. */
export function isDuration(value: string): Complaint {
  return /^(\d+(\.\d+)?(h|m|s|ms))+$/.test(value)
    ? undefined
    : `"${value}" is not a duration; use a form such as 12h or 90m`
}

/** In milliseconds. */
export function durationMs(value: string): number {
  const units: Readonly<Record<string, number>> = { h: 3_600_000, m: 60_000, s: 1000, ms: 1 }
  return [...value.matchAll(/(\d+(?:\.\d+)?)(ms|h|m|s)/g)].reduce(
    (sum, [, number, unit = 's']) => sum + Number(number) * (units[unit] ?? 0),
    0,
  )
}

export function isDomain(value: string): Complaint {
  return dns1123Subdomain(value).length === 0
    ? undefined
    : `"${value}" is not a domain; use a form such as cluster.local`
}

export function areLabels(labels: Readonly<Record<string, string>>): Complaint {
  for (const [key, value] of Object.entries(labels)) {
    const [wrong] = [...qualifiedName(key), ...labelValue(value)]
    if (wrong !== undefined) return `Label "${key}: ${value}": ${wrong}`
  }
  return undefined
}

/** Without leading dashes, as in `extra_args`. */
export function areFlags(args: Readonly<Record<string, unknown>>): Complaint {
  const wrong = Object.keys(args).find((name) => !/^[a-z0-9][\w.-]*$/i.test(name))
  if (wrong === undefined) return undefined
  return `"${wrong}" is not the name of a flag; omit the leading dashes, as in "max-pods: 110"`
}

/** Programs run directly on the machine: a bind to the same path is fine, others are not possible. */
export function areBinds(binds: readonly string[]): Complaint {
  for (const bind of binds) {
    const [source = '', target = ''] = bind.split(':')
    if (!source.startsWith('/') || !target.startsWith('/'))
      return `"${bind}" is not a bind; use a form such as /srv:/srv`
    if (source !== target) {
      return `"${bind}" shows a folder under another name; services run on the machine itself, so give "${source}" in extra_args`
    }
  }
  return undefined
}

export function areVariables(variables: readonly string[]): Complaint {
  const wrong = variables.find((variable) => !/^[A-Za-z_]\w*=/.test(variable))
  return wrong === undefined ? undefined : `"${wrong}" is not a variable; use a form such as NAME=value`
}

export function isHttpUrl(value: string): Complaint {
  return URL.canParse(value) && /^https?:\/\//.test(value)
    ? undefined
    : `"${value}" is not a URL; use a form such as https://10.0.0.1:2379`
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
