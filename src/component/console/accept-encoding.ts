/** Chooses the encoding of a response from the header `Accept-Encoding`. */

export type Encoding = 'br' | 'gzip' | 'identity'

/** Smallest first. */
const BY_SIZE = ['br', 'gzip'] as const

/** The smallest of the available encodings that the client accepts; `identity` is always available. */
export function chooseEncoding(
  header: string | readonly string[] | undefined,
  available: ReadonlySet<Encoding>,
): Encoding {
  const weights = weightsOf([header ?? []].flat().join(','))
  return BY_SIZE.find((name) => available.has(name) && (weights.get(name) ?? weights.get('*') ?? 0) > 0) ?? 'identity'
}

function weightsOf(header: string): ReadonlyMap<string, number> {
  const weights = new Map<string, number>()
  for (const part of header.split(',')) {
    const [name = '', ...parameters] = part.split(';').map((text) => text.trim().toLowerCase())
    const weight = parameters.find((text) => text.startsWith('q='))?.slice(2)
    // An unreadable weight is NaN, which is not above 0.
    if (name !== '') weights.set(name, weight === undefined ? 1 : Number(weight))
  }
  return weights
}
