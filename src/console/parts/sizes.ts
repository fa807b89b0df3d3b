/** Writes numbers of cores and bytes as people do. */
import { parseQuantity, quantityNumber } from '#meta/quantity.ts'

/** `16 cores`, `1.5 cores`. Empty for a text that is no quantity. */
export function coresText(quantity: string | undefined): string {
  const cores = numberOf(quantity)
  if (cores === undefined) return ''
  return cores === 1 ? '1 core' : `${rounded(cores)} cores`
}

const UNITS = ['KiB', 'MiB', 'GiB', 'TiB', 'PiB']

/** `62 GiB`. Empty for a text that is no quantity. */
export function bytesText(quantity: string | number | undefined): string {
  const bytes = typeof quantity === 'number' ? quantity : numberOf(quantity)
  if (bytes === undefined) return ''
  if (bytes < 1024) return `${bytes} bytes`
  const power = Math.min(UNITS.length, Math.floor(Math.log2(bytes) / 10))
  return `${rounded(bytes / 1024 ** power)} ${UNITS[power - 1] ?? ''}`
}

function numberOf(text = ''): number | undefined {
  try {
    return quantityNumber(parseQuantity(text))
  } catch {
    return undefined
  }
}

/** Two digits are enough to compare sizes. */
function rounded(value: number): string {
  return value < 10 ? String(Math.round(value * 10) / 10) : Math.round(value).toLocaleString('en')
}
