/** Time zones by Intl: whether a zone exists, its offset from UTC, and its transitions. */

/** Names of zones that go by another name too, which Intl knows and does not list. */
const OTHER_NAMES: ReadonlySet<string> = new Set(
  `Africa/Asmara Africa/Timbuktu America/Argentina/Buenos_Aires America/Argentina/Catamarca
   America/Argentina/ComodRivadavia America/Argentina/Cordoba America/Argentina/Jujuy America/Argentina/Mendoza
   America/Atikokan America/Atka America/Ensenada America/Fort_Wayne America/Indiana/Indianapolis
   America/Kentucky/Louisville America/Knox_IN America/Montreal America/Nipigon America/Nuuk America/Pangnirtung
   America/Porto_Acre America/Rainy_River America/Rosario America/Santa_Isabel America/Shiprock America/Thunder_Bay
   America/Virgin America/Yellowknife Antarctica/South_Pole Asia/Ashkhabad Asia/Choibalsan Asia/Chongqing
   Asia/Chungking Asia/Dacca Asia/Harbin Asia/Ho_Chi_Minh Asia/Istanbul Asia/Kashgar Asia/Kathmandu Asia/Kolkata
   Asia/Macao Asia/Tel_Aviv Asia/Thimbu Asia/Ujung_Pandang Asia/Ulan_Bator Asia/Yangon Atlantic/Faroe
   Atlantic/Jan_Mayen Australia/ACT Australia/Canberra Australia/Currie Australia/LHI Australia/NSW Australia/North
   Australia/Queensland Australia/South Australia/Tasmania Australia/Victoria Australia/West Australia/Yancowinna
   Brazil/Acre Brazil/DeNoronha Brazil/East Brazil/West CET CST6CDT Canada/Atlantic Canada/Central Canada/Eastern
   Canada/Mountain Canada/Newfoundland Canada/Pacific Canada/Saskatchewan Canada/Yukon Chile/Continental
   Chile/EasterIsland Cuba EET EST EST5EDT Egypt Eire Etc/GMT Etc/GMT+0 Etc/GMT+1 Etc/GMT+10 Etc/GMT+11 Etc/GMT+12
   Etc/GMT+2 Etc/GMT+3 Etc/GMT+4 Etc/GMT+5 Etc/GMT+6 Etc/GMT+7 Etc/GMT+8 Etc/GMT+9 Etc/GMT-0 Etc/GMT-1 Etc/GMT-10
   Etc/GMT-11 Etc/GMT-12 Etc/GMT-13 Etc/GMT-14 Etc/GMT-2 Etc/GMT-3 Etc/GMT-4 Etc/GMT-5 Etc/GMT-6 Etc/GMT-7 Etc/GMT-8
   Etc/GMT-9 Etc/GMT0 Etc/Greenwich Etc/UCT Etc/UTC Etc/Universal Etc/Zulu Europe/Belfast Europe/Kyiv Europe/Nicosia
   Europe/Tiraspol Europe/Uzhgorod Europe/Zaporozhye GB GB-Eire GMT GMT+0 GMT-0 GMT0 Greenwich HST Hongkong Iceland
   Iran Israel Jamaica Japan Kwajalein Libya MET MST MST7MDT Mexico/BajaNorte Mexico/BajaSur Mexico/General NZ
   NZ-CHAT Navajo PRC PST8PDT Pacific/Chuuk Pacific/Johnston Pacific/Kanton Pacific/Pohnpei Pacific/Samoa
   Pacific/Yap Poland Portugal ROC ROK Singapore Turkey UCT US/Alaska US/Aleutian US/Arizona US/Central
   US/East-Indiana US/Eastern US/Hawaii US/Indiana-Starke US/Michigan US/Mountain US/Pacific US/Samoa UTC Universal
   W-SU WET Zulu`.split(/\s+/),
)

let listed: ReadonlySet<string> | undefined

/** Whether there is a zone of this name, letter by letter: Intl itself does not look at case. */
export function isTimeZone(name: string): boolean {
  listed ??= new Set(Intl.supportedValuesOf('timeZone'))
  return listed.has(name) || (OTHER_NAMES.has(name) && formatOf(name) !== undefined)
}

/** Making one costs more than using it a hundred times. */
const formats = new Map<string, Intl.DateTimeFormat>()

function formatOf(zone: string): Intl.DateTimeFormat | undefined {
  let format = formats.get(zone)
  if (format !== undefined) return format
  try {
    format = new Intl.DateTimeFormat('en-US', {
      timeZone: zone,
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    })
    formats.set(zone, format)
    return format
  } catch {
    return undefined
  }
}

/** How far clocks of the zone are ahead of UTC at this moment. Throws RangeError when there is no such zone. */
export function offsetAt(zone: string, ms: number): number {
  const format = formatOf(zone)
  if (format === undefined) throw new RangeError(`There is no time zone "${zone}"`)
  const second = Math.floor(ms / 1000) * 1000
  const [month = 0, day = 0, year = 0, hour = 0, minute = 0, seconds = 0] = format
    .formatToParts(second)
    .filter(({ type }) => type !== 'literal')
    .map(({ value }) => Number(value))
  return Date.UTC(year, month - 1, day, hour, minute, seconds) - second
}

/** Clocks that are set twice within a week are beyond us. */
const STEP_MS = 7 * 24 * 3_600_000

/** The first moment after `fromMs` and not after `untilMs` at which clocks of the zone are set; undefined when none is. */
export function nextChange(zone: string, fromMs: number, untilMs: number): number | undefined {
  const offset = offsetAt(zone, fromMs)
  for (let before = fromMs; before < untilMs;) {
    const after = Math.min(before + STEP_MS, untilMs)
    if (offsetAt(zone, after) !== offset) return firstOtherwise(zone, offset, [before, after])
    before = after
  }
  return undefined
}

/** The whole second between the two at which the offset is another for the first time. */
function firstOtherwise(zone: string, offset: number, [same, other]: readonly [number, number]): number {
  let low = Math.floor(same / 1000)
  let high = Math.ceil(other / 1000)
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2)
    if (offsetAt(zone, middle * 1000) === offset) low = middle
    else high = middle
  }
  return high * 1000
}
